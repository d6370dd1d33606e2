// What the bar of a result says: how many rows, whether there are more, and what the read cost.
import { duration, exactCount } from "../../lib/numbers";
import { clock, day } from "../../lib/time";
import { dialectOf, lexemesOf, meaningful } from "./lexer";
import type { Result } from "./queries";
import type { Ran } from "./runner";
import { momentOf } from "../../lib/version";

/** Row queries without a limit of their own return this many rows a page, and no query returns more than the other. */
const DEFAULT_LIMIT = 1000;
const MOST_ROWS = 10_000;

export interface Said {
  readonly rows: string;
  /** What to know about rows that are not there; null if all are. */
  readonly limit: string | null;
  readonly cost: string;
  readonly title: string | undefined;
  readonly hasMore: boolean;
}

const UNITS = ["B", "KB", "MB", "GB", "TB"] as const;

/** A number of bytes: `512 B`, `1.2 MB`. */
export function bytes(count: number): string {
  const power = count < 1000 ? 0 : Math.min(Math.floor(Math.log10(count) / 3), UNITS.length - 1);
  const size = count / 1000 ** power;
  return `${power === 0 ? size : size.toFixed(1)} ${UNITS[power] ?? "B"}`;
}

/** Whether a query names a cursor of its own, which the server prefers to the one of the next page. */
export function hasOwnCursor(query: string): boolean {
  const lexemes = meaningful(lexemesOf(query));
  const isSql = dialectOf(lexemes) === "sql";
  return lexemes.some(({ kind, text }, index) => {
    const word = kind === "word" ? text.toLowerCase() : "";
    return isSql ? word === "offset" : word === "cursor" && lexemes[index + 1]?.text === ":";
  });
}

/** The limit that a query names; null if it names none. */
export function ownLimit(query: string): number | null {
  const lexemes = meaningful(lexemesOf(query));
  const at = lexemes.findLastIndex(({ kind, text }) => kind === "word" && text.toLowerCase() === "limit");
  const after = lexemes[at + 1]?.text === ":" ? lexemes[at + 2] : lexemes[at + 1];
  return at < 0 || after?.kind !== "number" ? null : Number(after.text);
}

/** A page of more bytes than this may have ended before its limit. */
const LARGE_PAGE = 64_000_000;

/** Whether a page is shorter than its limit because no row is left, and not because it grew too large. */
function isLastPage({ rows }: Result, limit: number): boolean {
  if (rows.length >= limit) return false;
  const sample = rows.slice(0, 20);
  return (JSON.stringify(sample).length / Math.max(1, sample.length)) * rows.length < LARGE_PAGE;
}

export function saidOf(ran: Ran, query: string): Said {
  const { result, rows } = ran;
  const count = rows.length;
  const limit = ownLimit(query);
  const hasCursor = result.cursor !== null && !isLastPage(result, limit ?? DEFAULT_LIMIT);
  const isFirst = hasCursor && count > 0;
  const word = count === 1 ? "row" : "rows";
  const isCut = !hasCursor && count > 0 && (limit === null ? count === DEFAULT_LIMIT : limit > MOST_ROWS && count === MOST_ROWS);
  const moment = result.transaction === null ? null : momentOf(result.transaction);
  const read = result.readBytes === null || result.readBytes === 0 ? "" : `, ${bytes(result.readBytes)} read`;
  const asOf = moment === null ? "" : `The newest change that was read is of ${day(moment, "utc")} ${clock(moment, "utc")} UTC`;
  const own = hasOwnCursor(query);
  return {
    rows: isFirst ? `First ${exactCount(count)} ${word}` : `${exactCount(count)} ${word}`,
    limit: isCut
      ? limit === null
        ? "There may be more: without a limit of its own a query returns 1,000 rows."
        : "There may be more: no query returns over 10,000 rows."
      : isFirst && own
        ? "There are more, after the query's own cursor."
        : null,
    cost: `${duration(ran.milliseconds)}${read}`,
    title: asOf === "" ? undefined : `${asOf}, in transaction ${result.transaction ?? ""}.`,
    hasMore: isFirst && !own,
  };
}
