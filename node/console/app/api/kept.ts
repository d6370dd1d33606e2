// Texts that are too long for an address. Each is kept in an unnamed view, whose id stands in the address.
import { isRecord, type Fields } from "./narrow";

/** What a view holds a long filter under. */
export const KEPT_FILTER = "console_filter";

/** What a view holds under a key of the console's own; null if it holds nothing there. */
export function keptIn(view: Fields, key: string): Fields | null {
  const data = view["view_data"];
  const charts = isRecord(data) ? data["custom_charts"] : null;
  const kept = isRecord(charts) ? charts[key] : null;
  return isRecord(kept) ? kept : null;
}
