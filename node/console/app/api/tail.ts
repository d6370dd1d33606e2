// Follows the rows of an object as they arrive: by a stream of events, and by asking where the server refuses one.
import { send } from "./client";
import { ApiError } from "../lib/errors";
import { isRecord } from "./narrow";
import { eventsOf } from "./sse";

/** The object whose rows arrive. */
export interface Followed {
  readonly organization: string;
  readonly kind: "project_logs" | "experiment";
  readonly id: string;
  /** The expression that the rows fulfil that are told of; empty for all. */
  readonly filter: string;
}

export interface Follower {
  /** The last transaction that was seen. A stream goes on after it. */
  readonly last: () => string;
  /** Reads what came after the last transaction. It is called when something has come, or may have. */
  readonly read: (signal: AbortSignal) => Promise<void>;
}

/** Time between two questions while there is no stream. */
const ASK_MS = 2000;
/** How long is asked before a stream that was refused is tried again. */
const REFUSED_MS = 60_000;
/** The least time between two reads, so that many rows a second do not make many reads. */
const READ_MS = 500;
const BACKOFF_MS = 1000;
const BACKOFF_MAX_MS = 30_000;

/** How a stream ended: the server refuses it, it was cut off, or the server asks to go on with another one. */
type Ending = "refused" | "cut" | "over";

const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      window.clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = window.setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });

/** What a failure means: a server without room or in trouble is asked for another stream soon, others are not. */
const endingOf = (status: number): Ending => (status >= 500 && status !== 501 ? "cut" : "refused");

function statusIn(data: string): number {
  const value: unknown = JSON.parse(data);
  const status = isRecord(value) ? value["status"] : null;
  return typeof status === "number" ? status : 0;
}

/** Reads the stream until it ends. `onRows` is called for each event of rows. */
async function readStream(
  { organization, kind, id, filter }: Followed,
  after: string,
  onRows: () => void,
  signal: AbortSignal,
): Promise<Ending> {
  const query = new URLSearchParams({ after, ...(filter.trim() === "" ? {} : { filter }) });
  const path = `/v1/${kind}/${encodeURIComponent(id)}/tail?${query.toString()}`;
  const response = await send("GET", path, { organization, headers: { accept: "text/event-stream" }, signal });
  if (response.body === null) return "refused";
  for await (const { name, data } of eventsOf(response.body)) {
    if (name === "rows") onRows();
    else if (name === "end") return "over";
    else if (name === "error") return endingOf(statusIn(data));
  }
  return "cut";
}

/** Reads the stream, and tells how it ended also where it failed. */
const streamed = (...what: Parameters<typeof readStream>): Promise<Ending> =>
  readStream(...what).catch((error: unknown): Ending => (error instanceof ApiError ? endingOf(error.status) : "cut"));

/** Reads when it is told to, one read at a time, and not more often than every half second. */
function reader({ read }: Follower, signal: AbortSignal) {
  let isWanted = false;
  let isReading = false;
  const run = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    while (isWanted && !signal.aborted) {
      isWanted = false;
      const isRead = await read(signal).then(() => true, () => false);
      isWanted ||= !isRead;
      await pause(isRead ? READ_MS : ASK_MS, signal);
    }
    isReading = false;
  };
  return (): void => {
    isWanted = true;
    void run();
  };
}

/** Asks again and again, until a time is over. */
async function ask({ read }: Follower, signal: AbortSignal): Promise<void> {
  for (const end = Date.now() + REFUSED_MS; Date.now() < end && !signal.aborted; ) {
    await pause(ASK_MS, signal);
    if (!signal.aborted) await read(signal).catch(() => undefined);
  }
}

/** Follows while the page can be seen. */
async function followSeen(followed: Followed, follower: Follower, signal: AbortSignal): Promise<void> {
  const wanted = reader(follower, signal);
  let backoff = BACKOFF_MS;
  while (!signal.aborted) {
    const onRows = (): void => {
      backoff = BACKOFF_MS;
      wanted();
    };
    const ending = await streamed(followed, follower.last(), onRows, signal);
    if (signal.aborted) return;
    if (ending === "refused") await ask(follower, signal);
    else if (ending === "cut") {
      await pause(backoff * (0.75 + Math.random() / 2), signal);
      backoff = Math.min(backoff * 2, BACKOFF_MAX_MS);
    }
  }
}

/** Follows an object until the signal ends it. Nothing is followed in a hidden tab. */
export function follow(followed: Followed, follower: Follower, signal: AbortSignal): void {
  let seen: AbortController | null = null;
  const settle = (): void => {
    const isSeen = document.visibilityState === "visible" && !signal.aborted;
    if (isSeen === (seen !== null)) return;
    seen?.abort();
    seen = isSeen ? new AbortController() : null;
    if (seen !== null) void followSeen(followed, follower, seen.signal);
  };
  document.addEventListener("visibilitychange", settle);
  signal.addEventListener("abort", () => {
    document.removeEventListener("visibilitychange", settle);
    settle();
  });
  settle();
}
