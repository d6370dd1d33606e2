// Writes moments the same way on every screen, in the one time zone of the page.
import { signal } from "@preact/signals";
import { NOTHING } from "./numbers";
import type { Zone } from "./preferences";

const HOUR_MS = 3_600_000;

/** The present, renewed every half minute, so that "3 min ago" stays true. */
export const now = signal(Date.now());

export function startClock(): void {
  window.setInterval(() => {
    now.value = Date.now();
  }, 30_000);
}

/** The moment that a text of the server names, or null. */
export function parseMoment(text: string | null): Date | null {
  if (text === null) return null;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? null : moment;
}

const pad = (number: number, digits = 2): string => String(number).padStart(digits, "0");

/** The time of day to the millisecond: `10:04:12.118`. */
export function clock(moment: Date, zone: Zone): string {
  const [hours, minutes, seconds, milliseconds] =
    zone === "utc"
      ? [moment.getUTCHours(), moment.getUTCMinutes(), moment.getUTCSeconds(), moment.getUTCMilliseconds()]
      : [moment.getHours(), moment.getMinutes(), moment.getSeconds(), moment.getMilliseconds()];
  return `${pad(hours)}:${pad(minutes)}:${pad(seconds)}.${pad(milliseconds, 3)}`;
}

/** The day: `2026-05-04`. */
export function day(moment: Date, zone: Zone): string {
  return zone === "utc"
    ? `${moment.getUTCFullYear()}-${pad(moment.getUTCMonth() + 1)}-${pad(moment.getUTCDate())}`
    : `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())}`;
}

/** How the zone is called in the status line: `UTC`, `UTC+02`, `UTC-03:30`. */
export function zoneName(moment: Date, zone: Zone): string {
  const minutes = zone === "utc" ? 0 : -moment.getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  const rest = size % 60 === 0 ? "" : `:${pad(size % 60)}`;
  return `UTC${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}${rest}`;
}

/** A moment for a cell: relative below an hour, else the time of day, with the date if it was another day. */
export function shortMoment(moment: Date | null, present: number, zone: Zone): string {
  if (moment === null) return NOTHING;
  const age = present - moment.getTime();
  if (age >= 0 && age < HOUR_MS) {
    if (age < 10_000) return "just now";
    return age < 60_000 ? `${Math.floor(age / 1000)} s ago` : `${Math.floor(age / 60_000)} min ago`;
  }
  const date = day(moment, zone);
  const time = clock(moment, zone);
  return date === day(new Date(present), zone) ? time : `${date} ${time.slice(0, 5)}`;
}

/** A moment in both zones and as ISO, for a tooltip. */
export function fullMoment(moment: Date | null): string {
  if (moment === null) return "";
  const local = `${day(moment, "local")} ${clock(moment, "local")} ${zoneName(moment, "local")}`;
  const utc = `${day(moment, "utc")} ${clock(moment, "utc")} UTC`;
  return `${local}\n${utc}\n${moment.toISOString()}`;
}
