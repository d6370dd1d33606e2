// A comparison as a Markdown table, for the description of a pull request.
import type { Compared, ComparedExperiment, Comparison } from "../../api/comparison";
import type { Judge } from "./judgements";
import { deltaText, intervalText, valueText, type Measure } from "./measures";
import { changeOf, meanOf, measuresIn } from "./summaries";

/** Writes a text such that it stands in a cell as it is. */
export const inCell = (text: string): string =>
  text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/[\\`*_[\]<>#|~@&$]/g, (character) => `\\${character}`)
    .trim();

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

interface Sides {
  readonly base: ComparedExperiment;
  readonly other: ComparedExperiment;
  readonly comparison: Comparison;
  readonly judge: Judge;
}

function lineOf(measure: Measure, { base, other, comparison, judge }: Sides): string | null {
  const change = changeOf(comparison, measure);
  if (change === null) return null;
  const { interval, word } = judge(other.id, measure, change);
  return row([
    inCell(measure.title),
    valueText(measure, meanOf(base, measure)),
    valueText(measure, meanOf(other, measure)),
    deltaText(measure, change.delta),
    `${intervalText(measure, interval)}${word === "" ? "" : ` (${word})`}`,
    `${change.up} / ${change.down} / ${change.same}`,
  ]);
}

function tableOf(sides: Sides): readonly string[] {
  const { base, other, comparison } = sides;
  const lines = measuresIn({ experiments: [base, other] }).map((measure) => lineOf(measure, sides)).filter((line) => line !== null);
  const rows = `${other.rows} rows against ${base.rows}`;
  const errors = `errors ${other.errors} against ${base.errors}`;
  return [
    `**${inCell(other.name)}** against **${inCell(base.name)}**: ${rows}, ${comparison.added} new, ${comparison.missing} missing, ${errors}.`,
    "",
    row(["", inCell(base.name), inCell(other.name), "Change", "95 % interval", "Up / down / same"]),
    "|---|--:|--:|--:|---|---|",
    ...lines,
  ];
}

function aloneOf({ experiments }: Compared): readonly string[] {
  return experiments.flatMap((experiment) => [
    `**${inCell(experiment.name)}**: ${experiment.rows} rows, ${experiment.errors} errors.`,
    "",
    row(["", "Mean", "Rows"]),
    "|---|--:|--:|",
    ...measuresIn({ experiments: [experiment] }).map((measure) =>
      row([inCell(measure.title), valueText(measure, meanOf(experiment, measure)), String(experiment.rows)]),
    ),
  ]);
}

/** Writes a table for each experiment against the base, and the address of the page below. */
export function markdownOf(compared: Compared, judge: Judge, address: string): string {
  const base = compared.experiments.find(({ id }) => id === compared.base);
  const tables = compared.comparisons.flatMap((comparison) => {
    const other = compared.experiments.find(({ id }) => id === comparison.experiment);
    return base === undefined || other === undefined ? [] : [tableOf({ base, other, comparison, judge })];
  });
  const parts = tables.length === 0 ? [aloneOf(compared)] : tables;
  return `${parts.map((lines) => lines.join("\n")).join("\n\n")}\n\n[Open the comparison](<${address}>)\n`;
}
