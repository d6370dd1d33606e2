// Tests of what a playground does without a page: columns, the queue, runs, replays, and the rows of experiments.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { InvokeEvent } from "../../api/invoke";
import { readPlayground, type Playground, type PlayScorer } from "../../api/playground";
import { readScores } from "../../api/playgroundRuns";
import { begun, isFaulty, queued, textOf, unqueued, type Cell } from "./cells";
import { figuresOf } from "./figures";
import { CellQueue, keyOf, type CellKey } from "./queue";
import { rowOfInput, typed } from "./rows";
import { Runner, type Job } from "./runner";
import { rootOf, saveRuns } from "./saving";
import {
  BLANK,
  changedVariant,
  dataOf,
  promptOf,
  signatureOf,
  titlesOf,
  withCopy,
  withFirst,
  withModels,
  withoutVariant,
  withPrompt,
} from "./variants";

const EMPTY = readPlayground(null);

const fourByThree = (): Playground => {
  let made = EMPTY;
  for (let index = 0; index < 4; index += 1) made = withPrompt(made, BLANK);
  return withModels(made, made.prompts.map(({ id }) => id), ["a", "b", "c"]);
};

test("models are added to all prompts at once, in the order of the prompts", () => {
  const made = fourByThree();
  expect(made.variants).toHaveLength(12);
  expect([...titlesOf(made).values()].slice(0, 4)).toEqual(["Prompt · a", "Prompt · b", "Prompt · c", "Prompt 2 · a"]);
  expect(withModels(made, made.prompts.map(({ id }) => id), ["b"])).toEqual(made);
});

test("a column takes its prompt with it when it is the last", () => {
  const made = withPrompt(withPrompt(EMPTY, BLANK, ["a", "b"]), BLANK, ["a"]);
  const [first, second, third] = made.variants.map(({ id }) => id);
  const one = withoutVariant(made, first ?? "");
  expect([one.prompts.length, one.variants.length]).toEqual([2, 2]);
  expect(withoutVariant(one, second ?? "").prompts).toHaveLength(1);
  expect(withFirst(made, third ?? "").variants.map(({ id }) => id)).toEqual([third, first, second]);
});

test("a copy has a prompt of its own, and equal columns are numbered", () => {
  const made = withPrompt(EMPTY, BLANK, ["a"]);
  const copy = withCopy(made, made.variants[0]?.id ?? "");
  expect([...titlesOf(copy).values()]).toEqual(["Prompt · a", "Prompt 2 · a"]);
  const changed = changedVariant(withModels(copy, [copy.prompts[0]?.id ?? ""], ["b"]), copy.variants[1]?.id ?? "", { model: "b" });
  expect(changed.variants.map(({ model }) => model).sort()).toEqual(["a", "b", "b"]);
});

test("the data of a column have its model and parameters, and keep the rest", () => {
  const named = { name: "P", source: null, data: { prompt: { type: "chat" }, options: { model: "m", params: { seed: 1 }, position: "x" }, mcp: {} } };
  const made = withPrompt(EMPTY, named);
  const [variant] = made.variants;
  const prompt = promptOf(made, variant);
  if (variant === undefined || prompt === null) throw new Error("no column");
  expect(dataOf(prompt, { ...variant, params: { seed: 2 } })).toEqual({ ...named.data, options: { position: "x", model: "m", params: { seed: 2 } } });
  expect(signatureOf(dataOf(prompt, variant))).not.toBe(signatureOf(dataOf(prompt, { ...variant, params: { seed: 2 } })));
});

const id = fc.string({ minLength: 1, maxLength: 6 });

test("a playground is the same after it was kept", () => {
  const data = fc.dictionary(id, fc.jsonValue()).map((value) => JSON.parse(JSON.stringify(value)));
  const source = fc.option(fc.record({ id, slug: id, version: id }), { nil: null });
  const prompts = fc.uniqueArray(fc.record({ id, name: id, data, source }), { selector: (one) => one.id, minLength: 1, maxLength: 3 });
  const playground = prompts.chain((all) =>
    fc.record({
      prompts: fc.constant(all),
      variants: fc.array(fc.record({ id, prompt: fc.constantFrom(...all.map((one) => one.id)), model: fc.string(), params: data })),
      scorers: fc.array(fc.oneof(fc.record({ kind: fc.constant("saved"), id, name: id }), fc.record({ kind: fc.constant("global"), name: id }))),
      judge: fc.string(),
      rows: fc.oneof(
        fc.record({ kind: fc.constant("input"), input: fc.string(), expected: fc.string() }),
        fc.record({ kind: fc.constant("dataset"), id, name: fc.string() }),
      ),
    }),
  );
  fc.assert(
    fc.property(playground, (one) => {
      expect(readPlayground(JSON.parse(JSON.stringify(one)))).toEqual(one);
    }),
    { numRuns: 40 },
  );
  fc.assert(fc.property(fc.jsonValue(), (value) => void readPlayground(value)));
});

const cells = (rows: number, variants: number): readonly CellKey[] =>
  Array.from({ length: rows * variants }, (_, at) => ({ row: `r${Math.floor(at / variants)}`, variant: `v${at % variants}` }));

test("never more cells run than may, each cell runs once, and visible rows come first", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(fc.nat({ max: 9 }), { maxLength: 4 }), fc.infiniteStream(fc.nat()), (most, seen, ends) => {
      const queue = new CellQueue(most);
      const all = cells(10, 3);
      expect(queue.add(all)).toHaveLength(30);
      expect(queue.add(all)).toHaveLength(0);
      const visible = seen.map((row) => `r${row}`);
      const [running, done]: CellKey[][] = [[], []];
      while (!queue.isIdle) {
        const waits = visible.some((row) => all.some((cell) => cell.row === row && !running?.includes(cell) && !done?.includes(cell)));
        const cell = queue.next(visible);
        if (cell === null) {
          const [ended] = running?.splice((ends.next().value ?? 0) % (running.length || 1), 1) ?? [];
          if (ended === undefined) throw new Error("nothing runs and something waits");
          queue.end(ended);
          done?.push(ended);
          continue;
        }
        if (waits) expect(visible).toContain(cell.row);
        running?.push(cell);
        expect(running?.length).toBeLessThanOrEqual(most);
      }
      expect(new Set(done?.map(keyOf)).size).toBe(30);
    }),
  );
});

interface Told {
  readonly all: Map<string, Cell>;
  readonly ended: string[];
  readonly most: () => number;
  readonly runner: Runner;
}

const SCORER: PlayScorer = { kind: "global", name: "ExactMatch" };

function staged(answers: (cell: CellKey, signal: AbortSignal) => AsyncGenerator<InvokeEvent, void, undefined>, score = async () => readScores("ExactMatch", 1)): Told {
  const all = new Map<string, Cell>();
  const ended: string[] = [];
  let [open, most, roots, ticks] = [0, 0, 0, 0];
  const job = (cell: CellKey): Job => ({
    of: "x",
    scorers: [SCORER],
    score,
    run: async function* (_root, signal) {
      open += 1;
      most = Math.max(most, open);
      try {
        yield* answers(cell, signal);
      } finally {
        open -= 1;
      }
    },
  });
  const runner = new Runner({
    job,
    get: (cell) => all.get(keyOf(cell)) ?? null,
    set: (cell, state) => void (state === null ? all.delete(keyOf(cell)) : all.set(keyOf(cell), state)),
    visible: () => [],
    ended: (cell) => void ended.push(keyOf(cell)),
    failure: (error) => ({ message: error instanceof Error ? error.message : "", isWithoutSecret: false }),
    isAbort: () => false,
    now: () => (ticks += 100),
    newRoot: () => `root${(roots += 1)}`,
  });
  return { all, ended, most: () => most, runner };
}

const until = async (isSo: () => boolean): Promise<void> => {
  for (let turn = 0; !isSo(); turn += 1) {
    if (turn > 1000) throw new Error("it never came");
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
};

test("cells run eight at once, are scored, and one that fails leaves the others alone", async () => {
  const told = staged(async function* (cell) {
    await Promise.resolve();
    if (cell.row === "r1") throw new Error("out of order");
    yield { kind: "text", text: cell.row };
    if (cell.row === "r2") yield { kind: "error", message: "broke off" };
    yield { kind: "done" };
  });
  told.runner.start(cells(20, 2));
  await until(() => told.runner.isIdle);
  expect(told.most()).toBe(8);
  expect(told.ended).toHaveLength(40);
  const figures = figuresOf(told.all.values());
  expect([figures.done, figures.failed, figures.faulty, figures.open]).toEqual([36, 4, 4, 0]);
  expect(figures.scores).toEqual([{ name: "ExactMatch", mean: 1, count: 36 }]);
  expect(told.all.get("v0:r2")?.failure?.message).toBe("broke off");
});

test("stopping ends what runs and takes back what waits; a scorer that failed is asked again alone", async () => {
  let asked = 0;
  const told = staged(
    async function* (_cell, signal) {
      yield { kind: "text", text: "a" };
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    },
    async () => {
      asked += 1;
      if (asked === 1) throw new Error("no judge");
      return readScores("ExactMatch", 0.5);
    },
  );
  told.runner.start(cells(5, 2));
  await until(() => [...told.all.values()].filter(({ answer }) => answer.text === "a").length === 8);
  told.runner.stop();
  await until(() => told.runner.isIdle);
  expect([...told.all.values()].map(({ state }) => state)).toEqual(Array.from({ length: 8 }, () => "stopped"));
  const one = { row: "r0", variant: "v0" };
  const done: Cell = { ...begun("root", "x", 0), state: "done", value: "a" };
  told.all.set(keyOf(one), done);
  for (const value of [null, 0.5]) {
    told.runner.start([one], "score");
    await until(() => told.runner.isIdle);
    expect(told.all.get(keyOf(one))?.scores[0]?.value).toBe(value);
    expect(isFaulty(told.all.get(keyOf(one)) ?? done)).toBe(value === null);
  }
});

test("a cell that is stopped while it is scored is not done", async () => {
  const told = staged(
    async function* () {
      yield { kind: "text", text: "a" };
      yield { kind: "done" };
    },
    () => new Promise((_, reject) => setTimeout(() => reject(new Error("cut off")), 20)),
  );
  const one = { row: "r0", variant: "v0" };
  told.runner.start([one]);
  await until(() => told.all.get(keyOf(one))?.state === "scoring");
  told.runner.stop(one);
  await until(() => told.runner.isIdle);
  expect(told.all.get(keyOf(one))).toMatchObject({ state: "stopped", value: "a" });
});

test("a cell that waits keeps what it had", () => {
  const done: Cell = { ...begun("root", "x", 0), state: "done", value: { a: 1 } };
  expect(textOf(queued(done))).toBe('{\n  "a": 1\n}');
  expect(unqueued(queued(queued(done)))).toEqual(done);
  expect(unqueued(queued(null))).toBeNull();
});

test("scores are numbers, flags, named, several or none", () => {
  const values = (value: unknown) => readScores("S", value).map(({ name, value: score, error }) => [name, score, error === null]);
  expect(values(0.25)).toEqual([["S", 0.25, true]]);
  expect(values(true)).toEqual([["S", 1, true]]);
  expect(values(null)).toEqual([["S", null, true]]);
  expect(values([{ name: "A", score: 0 }, { name: "B", score: 1 }])).toEqual([["A", 0, true], ["B", 1, true]]);
  expect(values("0.5")).toEqual([["S", null, false]]);
  expect(values({ score: 2 })).toEqual([["S", null, false]]);
  expect(readScores("S", { score: 1, metadata: { choice: "Y", rationale: "so" } })[0]?.reason).toBe("Y: so");
});

test("a typed value is JSON where it can be", () => {
  expect([typed(" "), typed("a b"), typed('{"a":1}'), typed("12")]).toEqual([null, "a b", { a: 1 }, 12]);
});

test("a saved run has a root row over the spans that ran, some at a time", async () => {
  const row = { ...rowOfInput({ kind: "input", input: "q", expected: "a" }), metadata: { level: "easy" }, origin: { id: "r" } };
  const cell = (at: number): Cell => ({
    ...begun(`root${at}`, "x", 1000),
    state: at === 0 ? "failed" : "done",
    failure: at === 0 ? { message: "no", isWithoutSecret: false } : null,
    value: "a",
    ended: 3000,
    scores: [...readScores("S", 1), { scorer: "J", name: "J", value: null, error: "late", reason: "" }],
  });
  const runs = Array.from({ length: 30 }, (_, at) => ({ row, cell: cell(at), metadata: { model: "m" } }));
  expect(rootOf(runs[1] ?? runs[0]!, "root1")).toMatchObject({
    span_id: "root1",
    input: "q",
    expected: "a",
    output: "a",
    scores: { S: 1 },
    metadata: { level: "easy", model: "m", scorer_errors: { J: "late" } },
    metrics: { start: 1, end: 3 },
    origin: { id: "r" },
  });
  const inserted: unknown[] = [];
  const told: number[] = [];
  await saveRuns(runs, { spans: async (roots) => roots.map((root) => ({ id: `${root}-llm` })), insert: async (events) => void inserted.push(...events) }, (done) => told.push(done));
  expect([inserted.length, told]).toEqual([60, [25, 30]]);
  expect(inserted[0]).toMatchObject({ id: "root0", output: null, error: "no" });
});
