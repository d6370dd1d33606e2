// Writes sizes of data the same way on every screen.
import { NOTHING } from "../lib/numbers";

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"] as const;

/** A number of bytes: `512 B`, `1.2 MB`. A unit is 1,000 of the one before. */
export function bytesText(count: number | null): string {
  if (count === null) return NOTHING;
  let [size, power] = [count, 0];
  while (size >= 999.95 && power < UNITS.length - 1) {
    size /= 1000;
    power += 1;
  }
  return `${power === 0 ? Math.round(size) : size.toFixed(1)} ${UNITS[power] ?? "B"}`;
}
