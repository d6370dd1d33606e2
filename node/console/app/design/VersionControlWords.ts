// How a version is called in sentences.
import { preferences } from "../lib/preferences";
import { clock, day, zoneName } from "../lib/time";
import { momentOf, readVersion } from "../lib/version";

/** A version in words: its moment in the zone of the page, or its transaction; null if the text is no version. */
export function versionWords(version: string): string | null {
  const read = readVersion(version);
  if (read.kind === "unknown") return null;
  const at = read.kind === "moment" ? read.at : read.kind === "transaction" ? momentOf(read.id) : new Date();
  if (at === null) return `transaction ${version}`;
  const { zone } = preferences.value;
  return `${day(at, zone)} ${clock(at, zone).slice(0, 8)} ${zoneName(at, zone)}`;
}

/** A moment as the browser's field for times has it, in the zone of the page. */
export function fieldText(moment: Date): string {
  const { zone } = preferences.peek();
  return `${day(moment, zone)}T${clock(moment, zone).slice(0, 8)}`;
}

/** The moment of the text of a field for times. */
export const momentOfField = (text: string): Date => new Date(preferences.peek().zone === "utc" ? `${text}Z` : text);

/** A moment as addresses have it, to the second. */
export const momentText = (moment: Date): string => `${moment.toISOString().slice(0, 19)}Z`;
