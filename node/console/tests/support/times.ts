// Measured times, and the table in which a run prints them.

export interface Measured {
  readonly what: string;
  readonly milliseconds: number;
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export function print(title: string, measured: readonly Measured[]): void {
  const lines = measured.map(({ what, milliseconds }) => `${milliseconds.toFixed(1).padStart(10)} ms  ${what}`);
  console.log([`${title} (median of a few; not asserted)`, ...lines].join("\n"));
}
