// Runs cells: their turn, the answer as it arrives, then the scorers one after the other.
import { gather, NOTHING_GATHERED, type Gathered, type InvokeEvent } from "../../api/invoke";
import type { PlayScorer } from "../../api/playground";
import type { ScoreGiven } from "../../api/playgroundRuns";
import { answered, begun, failed, finished, hasAnswer, heard, queued, scored, stopped, unqueued, type Cell, type CellFailure } from "./cells";
import { CellQueue, keyOf, type CellKey } from "./queue";

/** What runs in a cell now; null if its column or its row is gone. */
export interface Job {
  /** What runs, as `signatureOf` has it. */
  readonly of: string;
  readonly run: (root: string, signal: AbortSignal) => AsyncGenerator<InvokeEvent, void, undefined>;
  readonly scorers: readonly PlayScorer[];
  readonly score: (scorer: PlayScorer, cell: Cell, signal: AbortSignal) => Promise<readonly ScoreGiven[]>;
}

export interface Stage {
  readonly job: (cell: CellKey) => Job | null;
  readonly get: (cell: CellKey) => Cell | null;
  readonly set: (cell: CellKey, state: Cell | null) => void;
  /** The rows in view, the uppermost first. */
  readonly visible: () => readonly string[];
  /** Called when a cell has run to its end. */
  readonly ended: (cell: CellKey) => void;
  readonly failure: (error: unknown) => CellFailure;
  readonly isAbort: (error: unknown) => boolean;
  readonly now: () => number;
  readonly newRoot: () => string;
}

/** How often an answer that arrives is shown, in milliseconds. */
const SHOWN_MS = 60;

type Way = "run" | "score";

export class Runner {
  private readonly queue: CellQueue;
  private readonly controllers = new Map<string, AbortController>();
  private readonly ways = new Map<string, Way>();

  constructor(private readonly stage: Stage, most?: number) {
    this.queue = new CellQueue(most);
  }

  get isIdle(): boolean {
    return this.queue.isIdle;
  }

  /** Runs cells, or only their scorers. Cells that wait or run already are left as they are. */
  start(cells: readonly CellKey[], way: Way = "run"): void {
    for (const cell of this.queue.add(cells)) {
      this.ways.set(keyOf(cell), way);
      this.stage.set(cell, queued(this.stage.get(cell)));
    }
    this.fill();
  }

  /** Stops all cells, or one. */
  stop(only?: CellKey): void {
    const waiting = only === undefined ? this.queue.clear() : this.queue.forget(only) ? [only] : [];
    for (const cell of waiting) {
      const state = this.stage.get(cell);
      if (state !== null) this.stage.set(cell, unqueued(state));
    }
    if (only === undefined) for (const controller of this.controllers.values()) controller.abort();
    else this.controllers.get(keyOf(only))?.abort();
  }

  private fill(): void {
    const visible = this.stage.visible();
    for (let cell = this.queue.next(visible); cell !== null; cell = this.queue.next(visible)) void this.go(cell);
  }

  private async go(cell: CellKey): Promise<void> {
    const controller = new AbortController();
    const key = keyOf(cell);
    this.controllers.set(key, controller);
    try {
      const job = this.stage.job(cell);
      const before = this.stage.get(cell);
      if (job === null) this.stage.set(cell, null);
      else if (this.ways.get(key) === "score" && before !== null && hasAnswer(before)) {
        await this.score(cell, { ...before, state: "scoring", before: null }, job, controller.signal, false);
      } else await this.run(cell, job, controller.signal);
    } finally {
      this.controllers.delete(key);
      this.ways.delete(key);
      this.queue.end(cell);
      this.fill();
      this.stage.ended(cell);
    }
  }

  private async run(cell: CellKey, job: Job, signal: AbortSignal): Promise<void> {
    const { stage } = this;
    let state = begun(stage.newRoot(), job.of, stage.now());
    let answer: Gathered = NOTHING_GATHERED;
    let shown = 0;
    stage.set(cell, state);
    try {
      for await (const event of job.run(state.root, signal)) {
        answer = gather(answer, event);
        if (event.kind === "error" || stage.now() - shown < SHOWN_MS) continue;
        shown = stage.now();
        state = heard(state, answer);
        stage.set(cell, state);
      }
    } catch (error) {
      const now = stage.now();
      state = heard(state, answer);
      stage.set(cell, signal.aborted || stage.isAbort(error) ? stopped(state, now) : failed(state, stage.failure(error), now));
      return;
    }
    state = heard(state, answer);
    if (signal.aborted) stage.set(cell, stopped(state, stage.now()));
    else if (answer.error !== null) {
      stage.set(cell, failed(state, stage.failure(new Error(answer.error)), stage.now()));
    } else await this.score(cell, answered(state, answer, stage.now()), job, signal, true);
  }

  /** Runs the scorers that have given no score. `isWhole` says that the cell runs whole, and is not done without them. */
  private async score(cell: CellKey, from: Cell, job: Job, signal: AbortSignal, isWhole: boolean): Promise<void> {
    const { stage } = this;
    let state = from;
    stage.set(cell, state);
    for (const scorer of job.scorers) {
      if (state.scores.some((one) => one.scorer === scorer.name && one.error === null)) continue;
      let given: readonly ScoreGiven[];
      try {
        given = await job.score(scorer, state, signal);
      } catch (error) {
        if (signal.aborted || stage.isAbort(error)) return stage.set(cell, isWhole ? stopped(state, stage.now()) : finished(state));
        const { message } = stage.failure(error);
        given = [{ scorer: scorer.name, name: scorer.name, value: null, error: message, reason: "" }];
      }
      state = scored(state, given);
      stage.set(cell, state);
    }
    stage.set(cell, finished(state));
  }
}
