// Reads ranges as people type them: `3 days`, `yesterday`, `10:00 to 12:00`, `2026-05-04`.
import type { Zone } from "./preferences";
import { isMoment, momentOfInput, rangeBetween, readRange, UNITS, writeRange, type Unit } from "./range";
import { day } from "./time";

const DAY_MS = 86_400_000;

/** A unit by its name or the start of it: `min`, `hours`. Months are not units, because they differ in length. */
function unitOf(word: string): Unit | null {
  const names: Readonly<Record<Unit, readonly string[]>> = {
    s: ["s", "sec", "secs", "second", "seconds"],
    m: ["m", "min", "mins", "minute", "minutes"],
    h: ["h", "hr", "hrs", "hour", "hours"],
    d: ["d", "day", "days"],
    w: ["w", "wk", "week", "weeks"],
  };
  return UNITS.find((unit) => names[unit].includes(word)) ?? null;
}

function lastOf(text: string): string | null {
  const [, amount = "1", word = ""] = /^(?:last |past )?(?:(\d{1,5}) ?)?([a-z]+)(?: ago)?$/.exec(text) ?? [];
  const unit = unitOf(word);
  if (unit === null || Number(amount) === 0) return null;
  return writeRange({ kind: "last", amount: Number(amount), unit });
}

/** The first moment of the day that is `by` days away from the present one. */
function dayStart(present: number, by: number, zone: Zone): number {
  const today = momentOfInput(`${day(new Date(present), zone)}T00:00`, zone) ?? present;
  const about = new Date(today + by * DAY_MS + DAY_MS / 2);
  return momentOfInput(`${day(about, zone)}T00:00`, zone) ?? today;
}

interface Span {
  readonly from: number;
  /** The moment after it; the same as `from` for a time of day. */
  readonly to: number;
}

/** A day or a time that a text names. A time without a day is one of `dayText`. */
function spanOf(text: string, dayText: string, present: number, zone: Zone): Span | null {
  if (text === "now") return { from: present, to: present };
  if (text === "today") return { from: dayStart(present, 0, zone), to: dayStart(present, 1, zone) };
  if (text === "yesterday") return { from: dayStart(present, -1, zone), to: dayStart(present, 0, zone) };
  const [, date = dayText, time] = /^(\d{4}-\d\d-\d\d)?(?:(?:^|[ t])(\d{1,2}:\d\d(?::\d\d)?))?(?: ?utc|z)?$/.exec(text) ?? [];
  if (text === "" || (time === undefined && !text.startsWith(date))) return null;
  const itsZone = /(?:utc|z)$/.test(text) ? "utc" : zone;
  const from = momentOfInput(`${date}T${(time ?? "00:00").padStart(5, "0")}`, itsZone);
  if (from === null) return null;
  return { from, to: time === undefined ? dayStart(from, 1, itsZone) : from };
}

/** Understands a range as somebody types it, and returns its text; null if it says nothing that is understood. */
export function understoodRange(typed: string, present: number, zone: Zone): string | null {
  const text = typed.trim().toLowerCase().replace(/\s+/g, " ");
  if (["all", "all time", "everything", "ever"].includes(text)) return "all";
  const exact = readRange(typed.trim());
  if (exact !== null) return writeRange(exact);
  const last = lastOf(text);
  if (last !== null) return last;
  const today = day(new Date(present), zone);
  const isSince = text.startsWith("since ");
  const [first = "", second] = text.replace(/^since /, "").split(/ ?\.\. ?| to | until | - /);
  const from = spanOf(first, today, present, zone);
  if (from === null) return null;
  if (second === undefined) {
    if (isSince) return writeRange({ kind: "between", from: from.from, to: null });
    return from.from === from.to || !isMoment(from.to) ? null : rangeBetween(from.from, from.to);
  }
  const to = spanOf(second, day(new Date(from.from), zone), present, zone);
  return to === null || to.to <= from.from || !isMoment(to.to) ? null : rangeBetween(from.from, to.to);
}
