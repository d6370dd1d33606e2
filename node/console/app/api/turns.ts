// Requests that take turns: of one kind, only a few run at once.
import { runQuery, type Page, type QueryObject, type RunOptions } from "./query";

/** Does something when its turn comes. */
export type InTurn = <Result>(signal: AbortSignal, run: () => Promise<Result>) => Promise<Result>;

const aborted = (): DOMException => new DOMException("The read was given up.", "AbortError");

/** Makes a line of which at most `atOnce` run. One that is given up while it waits leaves the line. */
export function turns(atOnce: number): InTurn {
  let running = 0;
  const waiting: (() => void)[] = [];
  const entered = async (signal: AbortSignal): Promise<void> => {
    if (signal.aborted) throw aborted();
    if (running < atOnce) {
      running += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        const place = waiting.indexOf(enter);
        if (place >= 0) waiting.splice(place, 1);
        reject(aborted());
      };
      waiting.push(enter);
      signal.addEventListener("abort", leave, { once: true });
    });
  };
  return async (signal, run) => {
    await entered(signal);
    try {
      return await run();
    } finally {
      // The place of one that has ended is handed on to the next that waits.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

/** Makes a function that runs queries in a line. */
export const queriesIn =
  (inTurn: InTurn) =>
  (organization: string, query: QueryObject, options: RunOptions & { readonly signal: AbortSignal }): Promise<Page> =>
    inTurn(options.signal, () => runQuery(organization, query, options));
