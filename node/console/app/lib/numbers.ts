// Writes numbers the same way on every screen.

const ENGLISH = "en-US";
const whole = new Intl.NumberFormat(ENGLISH, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(ENGLISH, {
  notation: "compact",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const threeDigits = new Intl.NumberFormat(ENGLISH, { maximumSignificantDigits: 3, useGrouping: false });

/** What stands for a value that is absent. */
export const NOTHING = "-";

/** A count in full: `12,345`. */
export const exactCount = (count: number | null): string => (count === null ? NOTHING : whole.format(count));

/** A count for a cell: `1,234`, and `12.3k` from 10,000 on. */
export function shortCount(count: number | null): string {
  if (count === null) return NOTHING;
  return Math.abs(count) < 10_000 ? whole.format(count) : short.format(count).replace("K", "k");
}

/** A length of time: `840 ms`, `6.0 s`, `2 m 14 s`, `3 h 5 m`, `2 d 4 h`. */
export function duration(milliseconds: number | null): string {
  if (milliseconds === null) return NOTHING;
  if (milliseconds < 0) return `-${duration(-milliseconds)}`;
  if (Math.round(milliseconds) < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** An amount of dollars with three digits: `$0.0008`, `$12.3`; whole dollars from 1,000 on. */
export function money(dollars: number | null): string {
  if (dollars === null) return NOTHING;
  const size = Math.abs(dollars);
  const text = size < 1000 ? threeDigits.format(size) : whole.format(size);
  return dollars < 0 ? `-$${text}` : `$${text}`;
}

/** A score: `0.84`. */
export const score = (value: number | null): string => (value === null ? NOTHING : value.toFixed(2));

/** A difference of scores with its sign: `+0.03`, `-0.01`, `0.00`. */
export function delta(value: number | null): string {
  if (value === null) return NOTHING;
  const text = Math.abs(value).toFixed(2);
  if (text === "0.00") return text;
  return value < 0 ? `-${text}` : `+${text}`;
}
