// The spans of a trace by depth and time. A wide trace shows the longest spans of each level; the tree shows all.
import { useMemo, type KeyboardEvent } from "react";
import { classes } from "../../../design/classes";
import { duration } from "../../../lib/numbers";
import { windowOf, type OpenTrace } from "../useTrace";
import { flameBars, lanesOf } from "../tree/flame";
import { NONE, type TraceTree } from "../tree/model";
import style from "./Flame.module.css";

const LEVEL_PX = 26;
/** Least share of the width from which a bar has its name on it. */
const NAMED_FROM = 0.03;

export function Flame({ trace, tree }: { readonly trace: OpenTrace; readonly tree: TraceTree }) {
  const window = windowOf(trace);
  const lanes = useMemo(() => lanesOf(tree), [tree]);
  const { bars, isCut } = useMemo(() => flameBars(tree, lanes, window), [tree, lanes, window.from, window.to]);
  const last = bars.reduce((most, bar) => Math.max(most, lanes[bar.span] ?? 0), 0);
  const move = (event: KeyboardEvent): void => {
    const parent = tree.parent[trace.selected] ?? NONE;
    const moves: Readonly<Record<string, number | null>> = {
      ArrowUp: parent === NONE ? null : parent,
      ArrowDown: (tree.below[trace.selected] ?? 0) > 0 ? (tree.order[(tree.place[trace.selected] ?? 0) + 1] ?? null) : null,
      ArrowRight: tree.order[(tree.place[trace.selected] ?? 0) + 1] ?? null,
      ArrowLeft: tree.order[(tree.place[trace.selected] ?? 0) - 1] ?? null,
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
        <ul className={style["bars"]} aria-label="Spans by depth and time" style={{ height: `${(last + 1) * LEVEL_PX}px` }} onKeyDown={move}>
          {bars.map(({ span, from, share }) => {
            const head = tree.spans[span];
            const length = duration(((tree.end[span] ?? 0) - (tree.begin[span] ?? 0)) * 1000);
            const label = `${head?.name ?? ""}, ${length}${head?.hasError === true ? ", error" : ""}`;
            return (
              <li
                key={span}
                className={style["place"]}
                style={{ top: `${(lanes[span] ?? 0) * LEVEL_PX}px`, insetInlineStart: `${from * 100}%`, inlineSize: `${share * 100}%` }}
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
                  {share >= NAMED_FROM && head?.name}
                </button>
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}
