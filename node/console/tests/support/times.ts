// What a run measures: times and sizes beside a baseline, printed at its end and kept in a file if somebody wants that.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";

export interface Measured {
  readonly what: string;
  readonly value: string;
  /** What the same run needs without the console, or what the value has to be compared with. */
  readonly beside: string;
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export const milliseconds = (time: number): string => `${time < 10 ? time.toFixed(1) : Math.round(time)} ms`;

export const megabytes = (bytes: number): string => `${(bytes / (1 << 20)).toFixed(1)} MB`;

export const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

interface Run {
  readonly chromium: string;
  /** What the server says of itself. */
  readonly server: string;
  readonly data: string;
}

/** The tables of a run. */
export class Report {
  private readonly tables: (readonly [string, readonly Measured[]])[] = [];
  private readonly loads: number[] = [];

  add(title: string, rows: readonly Measured[]): void {
    this.tables.push([title, rows]);
    this.loads.push(loadavg()[0] ?? 0);
    const lines = rows.map(({ what, value, beside }) => `${value.padStart(12)}  ${what}${beside === "" ? "" : ` (${beside})`}`);
    console.log([`${title}; times are not asserted`, ...lines].join("\n"));
  }

  /** Writes the tables as Markdown. */
  keep(file: string, run: Run): void {
    const machine = cpus();
    const loads = [Math.min(...this.loads), Math.max(...this.loads)].map((load) => load.toFixed(1)).join(" to ");
    const head = [
      "# Speed of the console",
      "",
      "Written by `npm run flows -- speed` with `ASSAY_FLOWS_REPORT`. Times say something beside the baseline of the same run only:",
      "the machine is shared. They are medians of 5 where nothing else is said, and are never asserted.",
      "",
      `- ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC`,
      `- ${machine.length} cores, shared (${machine[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / (1 << 30))} GB; load of the machine meanwhile ${loads}`,
      `- ${execFileSync(run.chromium, ["--version"], { encoding: "utf8" }).trim()}, Node.js ${process.version}`,
      `- ${run.server}`,
      `- ${run.data}`,
    ];
    const tables = this.tables.flatMap(([title, rows]) => [
      "",
      `## ${title}`,
      "",
      "| | measured | beside |",
      "|---|---:|---|",
      ...rows.map(({ what, value, beside }) => `| ${what} | ${value} | ${beside} |`),
    ]);
    writeFileSync(file, `${[...head, ...tables].join("\n")}\n`);
  }
}
