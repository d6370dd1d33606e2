// Ranges of time: their text in addresses, their bounds, and their words.
import { clock, day, zoneName } from "./time";
import type { Zone } from "./preferences";

export const UNITS = ["s", "m", "h", "d", "w"] as const;

export type Unit = (typeof UNITS)[number];

/** A range: everything, the time until now, or the time between two moments, of which one may be absent. */
export type Range =
  | { readonly kind: "all" }
  | { readonly kind: "last"; readonly amount: number; readonly unit: Unit }
  | { readonly kind: "between"; readonly from: number | null; readonly to: number | null };

/** The bounds of a range as ISO text. The first moment belongs to it, the last does not. */
export interface Bounds {
  readonly from: string | null;
  readonly to: string | null;
}

export const ALL: Range = { kind: "all" };

/** Ranges to choose from, the shortest first. */
export const PRESETS = ["15m", "1h", "6h", "24h", "7d", "30d", "all"] as const;

const UNIT_MS: Readonly<Record<Unit, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const UNIT_NAMES: Readonly<Record<Unit, string>> = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

export const MAX_AMOUNT = 99_999;

/** The first and the last moment that the server knows: years 1 to 9999. */
const FIRST_MS = Date.parse("0001-01-01T00:00:00Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

export const isMoment = (moment: number): boolean => moment >= FIRST_MS && moment <= LAST_MS;

const lastMilliseconds = (amount: number, unit: Unit): number => amount * UNIT_MS[unit];

function lastOf(text: string): Range | null {
  const [, amount = "", unit = ""] = /^(\d{1,5})([smhdw])$/.exec(text) ?? [];
  const known = UNITS.find((one) => one === unit);
  return known === undefined || Number(amount) === 0 ? null : { kind: "last", amount: Number(amount), unit: known };
}

/** Reads a moment with its zone; a text without one is in UTC. Null if it names none. */
function momentOf(text: string): number | null {
  const parts = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?)?(Z|[+-]\d\d:\d\d)?$/.exec(text);
  if (parts === null) return null;
  const hasTime = parts[4] !== undefined;
  if (!hasTime && parts[8] !== undefined) return null;
  const moment = Date.parse(!hasTime || parts[8] !== undefined ? text : `${text}Z`);
  const isReal = new Date(Date.UTC(2000, Number(parts[2]) - 1, Number(parts[3]))).getUTCMonth() === Number(parts[2]) - 1;
  return Number.isNaN(moment) || !isReal || !isMoment(moment) ? null : moment;
}

function betweenOf(text: string): Range | null {
  const ends = text.split("..");
  const [first = "", last = ""] = ends;
  if (ends.length !== 2 || (first === "" && last === "")) return null;
  const from = first === "" ? null : momentOf(first);
  const to = last === "" ? null : momentOf(last);
  if ((from === null) !== (first === "") || (to === null) !== (last === "")) return null;
  return from !== null && to !== null && from >= to ? null : { kind: "between", from, to };
}

/** Reads the text of a range, or returns null if it is none. */
export function readRange(text: string): Range | null {
  if (text === "all") return ALL;
  return lastOf(text) ?? betweenOf(text);
}

/** Writes a moment as shortly as it is exact: `2026-05-04T10:00Z`. */
function momentText(moment: number | null): string {
  if (moment === null) return "";
  const text = new Date(moment).toISOString();
  if (!text.endsWith(".000Z")) return text;
  return text.endsWith(":00.000Z") ? `${text.slice(0, 16)}Z` : `${text.slice(0, 19)}Z`;
}

/** Writes a range as `15m`, `all`, or `2026-05-04T10:00Z..2026-05-04T12:00Z`. */
export function writeRange(range: Range): string {
  switch (range.kind) {
    case "all":
      return "all";
    case "last":
      return `${range.amount}${range.unit}`;
    case "between":
      return `${momentText(range.from)}..${momentText(range.to)}`;
  }
}

/** The text of the range between two moments, the later of which does not belong to it. */
export const rangeBetween = (from: number, to: number): string => writeRange({ kind: "between", from, to });

const isoOf = (moment: number | null): string | null => (moment === null ? null : new Date(moment).toISOString());

/** The bounds of a range. One that ends now has no upper bound; a text that is no range has no bounds. */
export function boundsOf(text: string, present: number): Bounds {
  const range = readRange(text) ?? ALL;
  switch (range.kind) {
    case "all":
      return { from: null, to: null };
    case "last":
      return { from: isoOf(Math.max(FIRST_MS, present - lastMilliseconds(range.amount, range.unit))), to: null };
    case "between":
      return { from: isoOf(range.from), to: isoOf(range.to) };
  }
}

/** The range with its bounds fixed, so that a link shows the same rows later. */
export function frozen(text: string, present: number): string {
  const range = readRange(text);
  if (range === null || range.kind !== "last") return text;
  const from = Math.max(FIRST_MS, present - lastMilliseconds(range.amount, range.unit));
  return rangeBetween(from, present);
}

function momentWords(moment: number, zone: Zone): string {
  const date = new Date(moment);
  const time = clock(date, zone).replace(/(?::00)?\.000$/, "");
  return `${day(date, zone)} ${time}`;
}

function betweenWords(from: number | null, to: number | null, zone: Zone): string {
  if (from === null) return to === null ? "All time" : `Until ${momentWords(to, zone)}`;
  if (to === null) return `Since ${momentWords(from, zone)}`;
  const isOneDay = day(new Date(from), zone) === day(new Date(to), zone);
  const end = momentWords(to, zone);
  return `${momentWords(from, zone)} to ${isOneDay ? end.slice(11) : end}`;
}

/** A range in words: `Last 15 minutes`, `2026-05-04 10:00 to 12:00`. */
export function rangeWords(text: string, zone: Zone): string {
  const range = readRange(text) ?? ALL;
  switch (range.kind) {
    case "all":
      return "All time";
    case "last":
      return `Last ${range.amount} ${UNIT_NAMES[range.unit]}${range.amount === 1 ? "" : "s"}`;
    case "between":
      return betweenWords(range.from, range.to, zone);
  }
}

/** The moment of a `datetime-local` input, or null. */
export function momentOfInput(text: string, zone: Zone): number | null {
  const moment = Date.parse(zone === "utc" ? `${text}Z` : text);
  return text === "" || Number.isNaN(moment) || !isMoment(moment) ? null : moment;
}

/** A moment as the text of a `datetime-local` input. */
export function inputOfMoment(moment: number, zone: Zone): string {
  const date = new Date(moment);
  return `${day(date, zone).padStart(10, "0")}T${clock(date, zone).replace(/(?::00)?\.000$/, "")}`;
}

/** The name of the zone at a moment, for a label. */
export const zoneAt = (moment: number, zone: Zone): string => zoneName(new Date(moment), zone);
