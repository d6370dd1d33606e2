// Where bars stand in time: zoom, ticks, and the overview of a whole trace in few pixels.
import type { TraceTree } from "./model";

/** The part of a trace's time that is shown, in seconds since the epoch. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/** Least length of a window: what is shorter could not be told apart. */
const LENGTH_MIN = 1e-6;

export const wholeOf = (tree: TraceTree): Window => ({ from: tree.first, to: Math.max(tree.last, tree.first + LENGTH_MIN) });

/** The share of a window at which a moment is; below 0 and above 1 outside of it. */
export const shareOf = (window: Window, moment: number): number => (moment - window.from) / (window.to - window.from);

export const momentAt = (window: Window, share: number): number => window.from + share * (window.to - window.from);

/** A window around a moment that is `factor` times as long, and within the whole. */
export function zoomed(window: Window, whole: Window, around: number, factor: number): Window {
  const length = Math.min(Math.max((window.to - window.from) * factor, LENGTH_MIN), whole.to - whole.from);
  const from = around - shareOf(window, around) * length;
  return within({ from, to: from + length }, whole);
}

/** A window that is moved by a share of its length, and within the whole. */
export function panned(window: Window, whole: Window, by: number): Window {
  const length = window.to - window.from;
  return within({ from: window.from + by * length, to: window.to + by * length }, whole);
}

function within(window: Window, whole: Window): Window {
  const length = Math.min(window.to - window.from, whole.to - whole.from);
  const from = Math.min(Math.max(window.from, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** Returns round lengths after which ticks stand, in seconds from the begin of the trace. */
export function ticksOf(window: Window, first: number, count: number): readonly number[] {
  const step = roundStep((window.to - window.from) / Math.max(count, 1));
  const ticks: number[] = [];
  const start = Math.ceil((window.from - first) / step);
  for (let tick = start; first + tick * step <= window.to && ticks.length <= 2 * count; tick += 1) ticks.push(tick * step);
  return ticks;
}

function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, LENGTH_MIN)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9)) ?? power * 10;
}

/** A bar of the overview, in pixels. */
export interface MiniBar {
  readonly x: number;
  readonly width: number;
  readonly level: number;
  readonly hasError: boolean;
}

/**
 * Returns the bars of the whole trace: of all spans that begin at the same pixel of the same level, the longest. A span
 * with an error is kept in any case.
 */
export function miniBars(tree: TraceTree, width: number, levels: number): readonly MiniBar[] {
  const whole = wholeOf(tree);
  const kept = new Map<number, MiniBar>();
  const errors: MiniBar[] = [];
  tree.spans.forEach((span, index) => {
    const x = Math.min(Math.floor(shareOf(whole, tree.begin[index] ?? 0) * width), width - 1);
    const end = shareOf(whole, tree.end[index] ?? 0) * width;
    const level = Math.min(tree.depth[index] ?? 0, levels - 1);
    const bar = { x, width: Math.max(end - x, 1), level, hasError: span.hasError };
    if (span.hasError) errors.push(bar);
    const key = level * width + x;
    const known = kept.get(key);
    if (known === undefined || known.width < bar.width) kept.set(key, bar);
  });
  return [...kept.values(), ...errors];
}

/** Returns where the critical path is at work in its leaves, in pixels and joined where they touch. */
export function pathBars(tree: TraceTree, critical: ReadonlySet<number>, width: number): readonly { readonly x: number; readonly width: number }[] {
  const whole = wholeOf(tree);
  const covered = new Uint8Array(width);
  for (const span of critical) {
    if ((tree.below[span] ?? 0) > 0) continue;
    const from = Math.max(Math.floor(shareOf(whole, tree.begin[span] ?? 0) * width), 0);
    const to = Math.min(Math.max(Math.ceil(shareOf(whole, tree.end[span] ?? 0) * width), from + 1), width);
    covered.fill(1, from, to);
  }
  const bars: { x: number; width: number }[] = [];
  for (let x = 0; x < width; x += 1) {
    const last = bars.at(-1);
    if (covered[x] === 0) continue;
    if (last !== undefined && last.x + last.width === x) last.width += 1;
    else bars.push({ x, width: 1 });
  }
  return bars;
}
