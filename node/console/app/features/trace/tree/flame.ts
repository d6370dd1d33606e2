// Where spans stand in a flame graph: below their parents, and beside each other where they ran at the same time.
import { shareOf, type Window } from "./bars";
import { NONE, type TraceTree } from "./model";

/** Lanes that are drawn; what would stand below is left out. */
export const LANES_MAX = 60;
/** Bars of one lane at most, and of all lanes. */
const LANE_BARS_MAX = 200;
const BARS_MAX = 1500;

/** Returns the lane of each span: below that of its parent, and free when the span begins. */
export function lanesOf(tree: TraceTree): Int32Array {
  const lanes = new Int32Array(tree.spans.length);
  const free: number[] = Array.from({ length: LANES_MAX }, () => -Infinity);
  const byBegin = [...tree.order].sort(
    (one, other) => (tree.begin[one] ?? 0) - (tree.begin[other] ?? 0) || (tree.place[one] ?? 0) - (tree.place[other] ?? 0),
  );
  for (const span of byBegin) {
    const parent = tree.parent[span] ?? NONE;
    const least = parent === NONE ? 0 : Math.min((lanes[parent] ?? 0) + 1, LANES_MAX);
    let lane = least;
    while (lane < LANES_MAX && (free[lane] ?? 0) > (tree.begin[span] ?? 0)) lane += 1;
    lanes[span] = lane;
    if (lane < LANES_MAX) free[lane] = tree.end[span] ?? 0;
  }
  return lanes;
}

export interface FlameBar {
  readonly span: number;
  /** Where the bar begins and how long it is, as shares of the width. */
  readonly from: number;
  readonly share: number;
}

/** Returns the bars in a window, the longest of each lane, and whether some are left out. */
export function flameBars(tree: TraceTree, lanes: Int32Array, window: Window) {
  const byLane: FlameBar[][] = Array.from({ length: LANES_MAX }, () => []);
  let isCut = false;
  for (const span of tree.order) {
    const from = shareOf(window, tree.begin[span] ?? 0);
    const to = shareOf(window, tree.end[span] ?? 0);
    if (to < 0 || from > 1) continue;
    const lane = byLane[lanes[span] ?? LANES_MAX];
    const left = Math.max(from, 0);
    if (lane === undefined) isCut = true;
    else lane.push({ span, from: left, share: Math.max(Math.min(to, 1) - left, 0.0005) });
  }
  const bars: FlameBar[] = [];
  for (const lane of byLane) {
    isCut ||= lane.length > LANE_BARS_MAX;
    bars.push(...lane.sort((one, other) => other.share - one.share).slice(0, LANE_BARS_MAX));
  }
  return { bars: bars.slice(0, BARS_MAX), isCut: isCut || bars.length > BARS_MAX };
}
