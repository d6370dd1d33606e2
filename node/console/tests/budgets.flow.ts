// Budgets: the bytes of the build, and the bytes and requests of the first load.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, inject, test } from "vitest";
import { flow } from "./support/flow";
import { logsPath } from "./support/logs";
import { load, noteFirstRows } from "./support/speed";

const KB = 1024;
const LIMITS = { firstLoad: 90 * KB, shell: 60 * KB, screen: 45 * KB, editor: 130 * KB, all: 520 * KB };
const REQUESTS = 8;

const { dist } = inject("stage").environment;
const assets = join(dist, "assets");

/** The bytes of a file as it travels. */
const gzipped = (name: string): number => gzipSync(readFileSync(join(dist, name)), { level: 9 }).length;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

const isCode = (name: string): boolean => /\.(?:js|css)$/.test(name);

/** The files that the page itself names: the shell. */
function shellFiles(): readonly string[] {
  const page = readFileSync(join(dist, "index.html"), "utf8");
  const named = [...page.matchAll(/\/app\/(assets\/[\w.-]+)/g)].map((match) => match[1] ?? "");
  return [...new Set(named)].filter(isCode);
}

/** The files of each part of the output, by the name that they start with. */
function parts(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const file of readdirSync(assets).filter(isCode)) {
    const name = file.replace(/-[\w-]{8}\.(?:js|css)$/, "");
    found.set(name, [...(found.get(name) ?? []), join("assets", file)]);
  }
  return found;
}

test("the bytes of the shell, of each screen and of everything keep to their budgets", () => {
  const shell = shellFiles();
  const size = sum(shell.map(gzipped));
  const all = sum(readdirSync(assets).filter(isCode).map((name) => gzipped(join("assets", name))));
  const others = [...parts()].map(([name, files]) => ({
    name,
    bytes: sum(files.filter((file) => !shell.includes(file)).map(gzipped)),
  }));
  console.log([`${size} shell`, ...others.map(({ name, bytes }) => `${bytes} ${name}`), `${all} all`].join("\n"));
  expect(size, "shell").toBeLessThanOrEqual(LIMITS.shell);
  expect(all, "all").toBeLessThanOrEqual(LIMITS.all);
  expect(others.filter(({ name, bytes }) => bytes > (name === "editor" ? LIMITS.editor : LIMITS.screen))).toEqual([]);
});

flow("the first load of logs keeps to its bytes and requests", async (acted) => {
  const context = await acted.enter(acted.seed.people.ann);
  await context.addInitScript(noteFirstRows);
  const page = await context.newPage();
  const { requests } = await load(page, logsPath(acted, acted.seed.wide));
  const files = [...new Set(requests.filter((path) => path.startsWith("/app/assets/") && isCode(path)))];
  const calls = requests.filter((path) => !path.startsWith("/app/assets/"));
  const bytes = sum(files.map((path) => gzipped(path.replace(/^\/app\//, ""))));
  console.log(`first load of logs: ${bytes} bytes in ${files.length} files, calls ${calls.join(" ")}`);
  expect.soft(bytes).toBeLessThanOrEqual(LIMITS.firstLoad);
  expect.soft(calls.length, calls.join(" ")).toBeLessThanOrEqual(REQUESTS);
});
