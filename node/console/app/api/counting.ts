// Queries that count over all rows of a list. A few run at once, so that the first counts do not wait for the last.
import { runQuery, type Page, type QueryObject, type RunOptions } from "./query";

/** Each such query uses all processors of the server. More of them at once only delay each other. */
const AT_ONCE = 2;

let running = 0;
const waiting: (() => void)[] = [];

/** Does some work as soon as fewer than two others are under way, in the order of the calls. */
export async function inTurn<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  // A turn that is handed over counts as running all the time.
  if (running < AT_ONCE) running += 1;
  else await new Promise<void>((begin) => waiting.push(begin));
  try {
    signal.throwIfAborted();
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

/** Runs a query that counts, in its turn. */
export const runCount = async (
  organization: string,
  query: QueryObject,
  options: RunOptions & { readonly signal: AbortSignal },
): Promise<Page> => inTurn(options.signal, async () => runQuery(organization, query, options));
