// Runs the cells of an open playground, keeps what has run, and counts it.
import { useEffect, useMemo, useRef } from "react";
import { isAbort, problemOf } from "../../lib/errors";
import { invoke, invokeWhole, type InvokeParent } from "../../api/invoke";
import type { Playground, PlayScorer, Variant } from "../../api/playground";
import { isWithoutSecret, readScores, type KeptRun } from "../../api/playgroundRuns";
import { toast } from "../../design/Toast";
import { announce } from "../../lib/store";
import type { Cell } from "./cells";
import { figuresOf } from "./figures";
import { isJudgeName } from "./globals";
import { cellOf, Keeper } from "./keeping";
import type { Place } from "./queries";
import type { CellKey } from "./queue";
import type { PlayRow } from "./rows";
import { Runner, type Job } from "./runner";
import type { Ran } from "./saving";
import { CellStore } from "./store";
import { dataOf, promptOf, signatureOf, titlesOf } from "./variants";

/** What runs now: the columns, rows and scorers as they are shown. */
interface Shown {
  readonly place: Place;
  readonly session: string;
  readonly playground: Playground;
  readonly rows: ReadonlyMap<string, PlayRow>;
}

const variantIn = ({ variants }: Playground, id: string): Variant | undefined => variants.find((one) => one.id === id);

/** What a column would run, as a short text; empty without a prompt. */
export function signatureIn(playground: Playground, variant: Variant): string {
  const prompt = promptOf(playground, variant);
  return prompt === null ? "" : signatureOf(dataOf(prompt, variant));
}

/** What a cell would run: another text means that its result is of something else. */
export const ofCell = (column: string, row: PlayRow): string => `${column}-${signatureOf(row.version)}`;

const parentOf = (session: string, root: string): InvokeParent => ({
  object_type: "playground_logs",
  object_id: session,
  row_ids: { id: root, span_id: root, root_span_id: root },
});

function jobOf({ place, session, playground, rows }: Shown, { row: rowId, variant: variantId }: CellKey): Job | null {
  const { organization, projectId } = place;
  const [row, variant] = [rows.get(rowId), variantIn(playground, variantId)];
  const prompt = promptOf(playground, variant);
  if (row === undefined || variant === undefined || prompt === null) return null;
  const { input, expected, metadata } = row;
  const name = titlesOf(playground).get(variantId) ?? prompt.name;
  const judge = playground.judge;
  const score = async (scorer: PlayScorer, { root, value }: Cell, signal: AbortSignal) => {
    const isAsked = scorer.kind === "global" && judge !== "" && isJudgeName(scorer.name);
    const given = await invokeWhole(
      organization,
      {
        what: scorer.kind === "global" ? { kind: "global", name: scorer.name } : { kind: "saved", id: scorer.id },
        projectId,
        input: { input, output: value, expected, metadata, ...(isAsked ? { model: judge } : {}) },
        parent: parentOf(session, root),
      },
      signal,
    );
    return readScores(scorer.name, given);
  };
  return {
    of: ofCell(signatureIn(playground, variant), row),
    scorers: playground.scorers,
    score,
    run: (root, signal) =>
      invoke(
        organization,
        {
          what: { kind: "prompt", prompt: dataOf(prompt, variant), name },
          projectId,
          input,
          expected,
          metadata,
          mode: "parallel",
          parent: parentOf(session, root),
        },
        signal,
      ),
  };
}

/** What a saved row says of its cell. */
export function ranOf({ playground, rows }: Pick<Shown, "playground" | "rows">, key: CellKey, cell: Cell): Ran | null {
  const [row, variant] = [rows.get(key.row), variantIn(playground, key.variant)];
  const prompt = promptOf(playground, variant);
  if (row === undefined || variant === undefined || prompt === null) return null;
  return { row, cell, metadata: { model: variant.model, prompt: prompt.name, ...variant.params } };
}

function failureOf(error: unknown) {
  const message = problemOf(error, 0).text;
  return { message, isWithoutSecret: isWithoutSecret(message) };
}

/** Says at the end of a run what came of it. */
function sayEnd(cells: readonly (Cell | null)[]): void {
  const { done, failed } = figuresOf(cells);
  announce(`The run has ended. ${done} cells are done, ${failed} failed.`);
}

export interface Runs {
  readonly store: CellStore;
  readonly start: (cells: readonly CellKey[]) => void;
  /** Runs what failed again: the answer, or only the scorers that failed. */
  readonly retry: (cells: readonly CellKey[]) => void;
  /** Runs the scorers that have given no score. */
  readonly score: (cells: readonly CellKey[]) => void;
  readonly stop: (cell?: CellKey) => void;
}

export function useRuns(shown: Shown, kept: readonly KeptRun[], visible: () => readonly string[]): Runs {
  const latest = useRef(shown);
  latest.current = shown;
  const seen = useRef(visible);
  seen.current = visible;
  const made = useMemo(() => {
    const store = new CellStore();
    for (const run of kept) store.set(run, cellOf(run));
    const { place, session } = shown;
    const keeper = new Keeper({
      organization: place.organization,
      session,
      get: (cell) => store.get(cell),
      set: (cell, state) => store.set(cell, state),
      ran: (cell, state) => ranOf(latest.current, cell, state),
      onFailure: (error) => toast(`Some results were not kept, and are gone when the page is left: ${problemOf(error, 0).text}`, true),
    });
    const runner: Runner = new Runner({
      job: (cell) => jobOf(latest.current, cell),
      get: (cell) => store.get(cell),
      set: (cell, state) => store.set(cell, state),
      visible: () => seen.current(),
      ended: (cell) => {
        keeper.add(cell);
        if (!runner.isIdle) return;
        const { playground, rows } = latest.current;
        sayEnd(playground.variants.flatMap(({ id }) => [...rows.keys()].map((row) => store.get({ row, variant: id }))));
      },
      failure: failureOf,
      isAbort,
      now: () => Date.now(),
      newRoot: () => crypto.randomUUID(),
    });
    const hasFailed = (cell: CellKey): boolean => store.get(cell)?.state === "failed";
    const runs: Runs = {
      store,
      start: (cells) => runner.start(cells),
      retry: (cells) => {
        runner.start(cells.filter(hasFailed));
        runner.start(cells.filter((cell) => !hasFailed(cell)), "score");
      },
      score: (cells) => runner.start(cells, "score"),
      stop: (cell) => runner.stop(cell),
    };
    return runs;
  }, []);
  useEffect(() => () => made.stop(), [made]);
  return made;
}

