// Imports the records of a file: in slices, so that the page stays awake, and in batches that can be taken up again.
import type { Fields } from "../../api/narrow";
import { canonical } from "./cells";
import { rowOf, type Mapping, type Options } from "./mapping";
import { createReader, type FileRecord, type Format, type Reader } from "./records";

export const BATCH_ROWS = 500;
/** A batch is sent when it has so many characters, whatever its rows. */
export const BATCH_SIZE = 4 * 1024 * 1024;
const SLICE = 512 * 1024;

export const DUPLICATES = ["none", "id", "input"] as const;

/** By what rows are the same: not at all, by id, or by input. */
export type DuplicatesBy = (typeof DUPLICATES)[number];

export const MODES = ["skip", "replace", "add"] as const;

/** What is done with a row that is there already. */
export type DuplicateMode = (typeof MODES)[number];

export interface Plan {
  readonly format: Format;
  readonly mapping: Mapping;
  readonly options: Options;
  readonly by: DuplicatesBy;
  readonly mode: DuplicateMode;
}

/** A line that did not become a row. */
export interface Refused {
  readonly line: number;
  readonly message: string;
}

export interface Progress {
  readonly done: number;
  readonly size: number;
  readonly written: number;
  readonly replaced: number;
  readonly skipped: number;
  readonly refused: readonly Refused[];
}

export const NO_PROGRESS: Progress = { done: 0, size: 0, written: 0, replaced: 0, skipped: 0, refused: [] };

/** Text in slices, with how far each reaches. */
export async function* slicesOf(file: Blob): AsyncGenerator<{ readonly text: string; readonly done: number }> {
  const decoder = new TextDecoder();
  for (let start = 0; start < file.size; start += SLICE) {
    const end = Math.min(start + SLICE, file.size);
    const bytes = await file.slice(start, end).arrayBuffer();
    yield { text: decoder.decode(bytes, { stream: end < file.size }), done: end };
  }
}

/** The first characters of a file. */
export const startOf = async (file: Blob): Promise<string> => new TextDecoder().decode(await file.slice(0, SLICE).arrayBuffer());

export interface Preview {
  readonly records: readonly FileRecord[];
  /** Whether the file has more records than are shown. */
  readonly hasMore: boolean;
}

/** Reads the first records of a file. */
export async function previewOf(file: Blob, format: Format, count: number): Promise<Preview> {
  const reader = createReader(format, await startOf(file));
  const records: FileRecord[] = [];
  for await (const { text } of slicesOf(file)) {
    records.push(...reader.push(text));
    if (records.length > count) return { records: records.slice(0, count), hasMore: true };
  }
  records.push(...reader.end());
  return { records: records.slice(0, count), hasMore: records.length > count };
}

/** A row that waits to be sent. */
interface Waiting {
  readonly line: number;
  readonly event: Fields;
  readonly isReplacing: boolean;
}

/** What a row is recognized by, and the rows that are there, by that. */
export type Known = Map<string, string>;

export const keyOfRow = (row: Fields, by: DuplicatesBy): string | null => {
  if (by === "input") return row["input"] === undefined ? null : canonical(row["input"]);
  const id = row["id"];
  return by === "id" && typeof id === "string" ? id : null;
};

type Placed = { readonly event: Fields; readonly isReplacing: boolean } | null;

/** Decides about a row: it is written with an id, or skipped. Rows of the same file count as there already. */
export function placedRow(row: Fields, { by, mode }: Pick<Plan, "by" | "mode">, known: Known, newId: () => string): Placed {
  const key = keyOfRow(row, by);
  const there = key === null ? undefined : known.get(key);
  const given = row["id"];
  const own = typeof given === "string" ? given : newId();
  if (there === undefined || key === null) {
    if (key !== null) known.set(key, own);
    return { event: { ...row, id: own }, isReplacing: false };
  }
  if (mode === "skip") return null;
  if (mode === "replace") return { event: { ...row, id: there }, isReplacing: true };
  return { event: { ...row, id: by === "id" ? newId() : own }, isReplacing: false };
}

/** What a batch met: rows that the server took, and lines that it refused. */
export interface Sent {
  readonly taken: number;
  readonly refused: readonly { readonly index: number; readonly message: string }[];
}

export interface Work {
  /** Writes rows in one transaction; throws if nothing of them could be written for a reason that may pass. */
  readonly send: (events: readonly Fields[]) => Promise<Sent>;
  readonly newId: () => string;
  readonly onProgress: (progress: Progress) => void;
  /** Waits while the import is paused; returns false once it is cancelled. */
  readonly mayGoOn: () => Promise<boolean>;
  /** Called when a batch failed. Returns whether it is tried again. */
  readonly onFailure: (error: unknown) => Promise<boolean>;
}

const sizeOf = (event: Fields): number => JSON.stringify(event).length;

/** Runs a plan. Returns whether it came to the end. */
export async function runImport(file: Blob, plan: Plan, known: Known, work: Work): Promise<boolean> {
  const refused: Refused[] = [];
  const progress = { ...NO_PROGRESS, size: file.size, refused };
  const state: Run = { progress, refused, waiting: [], size: 0, plan, known, work };
  const reader: Reader = createReader(plan.format, await startOf(file));
  for await (const { text, done } of slicesOf(file)) {
    if (!(await take(state, reader.push(text)))) return false;
    told(state, { done });
    await pause();
  }
  if (!(await take(state, reader.end()))) return false;
  const isDone = await flush(state);
  told(state, { done: file.size });
  return isDone;
}

interface Run {
  progress: Progress;
  waiting: Waiting[];
  size: number;
  /** The list that the progress shows. It grows in place, because it may become long. */
  readonly refused: Refused[];
  readonly plan: Plan;
  readonly known: Known;
  readonly work: Work;
}

/** Lets the page draw and answer before the next slice. */
const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 0);
  });

function told(run: Run, changed: Partial<Progress>): void {
  run.progress = { ...run.progress, ...changed };
  run.work.onProgress(run.progress);
}

async function take(run: Run, records: readonly FileRecord[]): Promise<boolean> {
  for (const record of records) {
    if ("fault" in record) {
      run.refused.push({ line: record.line, message: record.fault });
      continue;
    }
    const row = placedRow(rowOf(record.fields, run.plan.mapping, run.plan.options), run.plan, run.known, run.work.newId);
    if (row === null) {
      run.progress = { ...run.progress, skipped: run.progress.skipped + 1 };
      continue;
    }
    const size = sizeOf(row.event);
    if (run.waiting.length > 0 && run.size + size > BATCH_SIZE && !(await flush(run))) return false;
    run.waiting.push({ line: record.line, ...row });
    run.size += size;
    if (run.waiting.length >= BATCH_ROWS && !(await flush(run))) return false;
  }
  return true;
}

/** Sends what waits, again and again if that is wished. Ids are fixed, so that a second try writes nothing twice. */
async function flush(run: Run): Promise<boolean> {
  for (;;) {
    if (!(await run.work.mayGoOn())) return false;
    if (run.waiting.length === 0) return true;
    const batch = run.waiting;
    try {
      const { refused } = await run.work.send(batch.map(({ event }) => event));
      const lost = new Map(refused.map(({ index, message }) => [index, message]));
      const taken = batch.filter((_, index) => !lost.has(index));
      const lines = refused.map(({ index, message }) => ({ line: batch[index]?.line ?? 0, message }));
      const replaced = taken.filter(({ isReplacing }) => isReplacing).length;
      run.waiting = [];
      run.size = 0;
      run.refused.push(...lines);
      told(run, {
        written: run.progress.written + taken.length - replaced,
        replaced: run.progress.replaced + replaced,
      });
      return true;
    } catch (error) {
      if (!(await run.work.onFailure(error))) return false;
    }
  }
}
