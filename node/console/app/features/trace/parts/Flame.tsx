// The spans of a trace by depth and time. A wide trace shows the longest spans of each level; the tree shows all.
import { useMemo, type KeyboardEvent } from "react";
import { classes } from "../../../design/classes";
import { duration } from "../../../lib/numbers";
import type { OpenTrace } from "../useTrace";
import { windowOf } from "../useTrace";
import { shareOf, type Window } from "../tree/bars";
import { nextOf } from "../tree/lines";
import { NONE, type TraceTree } from "../tree/model";
import style from "./Flame.module.css";

const LEVEL_PX = 22;
const LEVELS_MAX = 60;
/** Bars of one level at most, and of all levels. */
const LEVEL_BARS_MAX = 200;
const BARS_MAX = 1500;

interface FlameBar {
  readonly span: number;
  readonly from: number;
  readonly share: number;
}

/** Returns the bars in a window, the longest of each level, and whether some are left out. */
export function flameBars(tree: TraceTree, window: Window): { readonly bars: readonly FlameBar[]; readonly isCut: boolean } {
  const levels: FlameBar[][] = [];
  let isCut = false;
  for (const span of tree.order) {
    const depth = tree.depth[span] ?? 0;
    const from = shareOf(window, tree.begin[span] ?? 0);
    const to = shareOf(window, tree.end[span] ?? 0);
    if (to < 0 || from > 1) continue;
    if (depth >= LEVELS_MAX) {
      isCut = true;
      continue;
    }
    const left = Math.max(from, 0);
    (levels[depth] ??= []).push({ span, from: left, share: Math.max(Math.min(to, 1) - left, 0.0005) });
  }
  const bars: FlameBar[] = [];
  for (const level of levels) {
    const longest = (level ?? []).sort((one, other) => other.share - one.share);
    isCut ||= longest.length > LEVEL_BARS_MAX;
    bars.push(...longest.slice(0, LEVEL_BARS_MAX));
  }
  return { bars: bars.slice(0, BARS_MAX), isCut: isCut || bars.length > BARS_MAX };
}

export function Flame({ trace, tree }: { readonly trace: OpenTrace; readonly tree: TraceTree }) {
  const window = windowOf(trace);
  const { bars, isCut } = useMemo(() => flameBars(tree, window), [tree, window]);
  const depth = bars.reduce((most, bar) => Math.max(most, tree.depth[bar.span] ?? 0), 0);
  const move = (event: KeyboardEvent): void => {
    const parent = tree.parent[trace.selected] ?? NONE;
    const moves: Readonly<Record<string, number | null>> = {
      ArrowUp: parent === NONE ? null : parent,
      ArrowDown: (tree.below[trace.selected] ?? 0) > 0 ? (tree.order[(tree.place[trace.selected] ?? 0) + 1] ?? null) : null,
      ArrowRight: nextOf(tree, [...tree.order], trace.selected, 1),
      ArrowLeft: nextOf(tree, [...tree.order], trace.selected, -1),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const target = moves[event.key];
    if (target !== null && target !== undefined) trace.select(target);
  };
  return (
    <div className={style["flame"]}>
      {isCut && <p className={style["note"]}>The longest spans of each level are shown. Zoom in to see the others.</p>}
      <div className={style["scroll"]}>
        <ul className={style["bars"]} aria-label="Spans by depth and time" style={{ height: `${(depth + 1) * LEVEL_PX}px` }} onKeyDown={move}>
          {bars.map(({ span, from, share }) => {
            const head = tree.spans[span];
            const length = duration(((tree.end[span] ?? 0) - (tree.begin[span] ?? 0)) * 1000);
            const label = `${head?.name ?? ""}, ${length}${head?.hasError === true ? ", error" : ""}`;
            return (
              <li
                key={span}
                className={style["place"]}
                style={{ top: `${(tree.depth[span] ?? 0) * LEVEL_PX}px`, insetInlineStart: `${from * 100}%`, inlineSize: `${share * 100}%` }}
              >
                <button
                  type="button"
                  tabIndex={span === trace.selected ? 0 : -1}
                  aria-pressed={span === trace.selected}
                  className={classes(style["bar"], head?.hasError === true && style["bad"])}
                  title={label}
                  aria-label={label}
                  onClick={() => trace.select(span)}
                >
                  {head?.name}
                </button>
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}
