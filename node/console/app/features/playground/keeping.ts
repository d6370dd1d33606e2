// Keeps runs that have ended: reads what their model calls cost, and writes their root rows.
import { keepRuns, keptMetadata, readRunFigures, ROOTS_MAX, type KeptRun } from "../../api/playgroundRuns";
import { isWithoutSecret } from "../../api/playgroundRuns";
import { NOTHING_GATHERED } from "../../api/invoke";
import type { Cell } from "./cells";
import { keyOf, type CellKey } from "./queue";
import { isSavable, rootOf, type Ran } from "./saving";

/** How long runs are gathered before they are kept, in milliseconds. */
const GATHERED_MS = 700;

/** How often costs are asked for that are not there yet. */
const TRIES_MAX = 3;

export interface KeepingStage {
  readonly organization: string;
  readonly session: string;
  readonly get: (cell: CellKey) => Cell | null;
  readonly set: (cell: CellKey, state: Cell | null) => void;
  /** What a cell ran; null if its column or its row is gone. */
  readonly ran: (cell: CellKey, state: Cell) => Ran | null;
  readonly onFailure: (error: unknown) => void;
}

export class Keeper {
  private readonly waiting = new Map<string, { readonly cell: CellKey; readonly tries: number }>();
  private timer: number | null = null;

  constructor(private readonly stage: KeepingStage) {}

  add(cell: CellKey, tries = 0): void {
    this.waiting.set(keyOf(cell), { cell, tries });
    this.timer ??= window.setTimeout(() => {
      this.timer = null;
      this.keep().catch(this.stage.onFailure);
    }, GATHERED_MS);
  }

  private async keep(): Promise<void> {
    const some = [...this.waiting.values()].slice(0, ROOTS_MAX);
    for (const { cell } of some) this.waiting.delete(keyOf(cell));
    const next = [...this.waiting.values()][0];
    if (next !== undefined) this.add(next.cell, next.tries);
    const { organization, session, get } = this.stage;
    const ended = some.flatMap(({ cell, tries }) => {
      const state = get(cell);
      return isSavable(state) ? [{ cell, tries, state }] : [];
    });
    if (ended.length === 0) return;
    const figures = await readRunFigures(organization, session, ended.map(({ state }) => state.root));
    const rows = ended.flatMap(({ cell, tries, state }) => {
      const found = figures.get(state.root) ?? null;
      const now = this.take(cell, state, found);
      if (found === null && state.state === "done" && tries + 1 < TRIES_MAX) this.add(cell, tries + 1);
      const ran = this.stage.ran(cell, now);
      if (ran === null) return [];
      const kept = keptMetadata({ ...cell, of: now.of, scores: now.scores, figures: now.figures });
      return [rootOf({ ...ran, metadata: { ...ran.metadata, ...kept } }, keyOf(cell))];
    });
    await keepRuns(organization, session, rows);
  }

  /** Adds what was counted to a cell, unless it has begun to run again. */
  private take(cell: CellKey, state: Cell, figures: Cell["figures"]): Cell {
    const now = { ...state, figures: figures ?? state.figures };
    const shown = this.stage.get(cell);
    if (shown !== null && shown.root === state.root) this.stage.set(cell, { ...shown, figures: now.figures });
    return now;
  }
}

/** A cell as it was kept. */
export const cellOf = ({ of, root, output, failure, scores, figures, started, ended }: KeptRun): Cell => ({
  state: failure === null ? "done" : "failed",
  before: null,
  answer: NOTHING_GATHERED,
  value: output,
  failure: failure === null ? null : { message: failure, isWithoutSecret: isWithoutSecret(failure) },
  scores,
  root,
  started,
  ended,
  figures,
  of,
});
