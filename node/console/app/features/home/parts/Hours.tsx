// The traces of 24 hours as bars, with those that fail at the foot of each.
import type { Day } from "../days";
import { exactCount } from "../../../lib/numbers";
import style from "./ProjectGrid.module.css";

const STEP = 4;
const HEIGHT = 18;

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

/** Bars of heights from 0 to 1 as one path. Whoever is there has a bar of a pixel at least. */
export const barsPath = (heights: readonly number[]): string =>
  heights
    .map((height, place) => {
      const pixels = height <= 0 ? 0 : Math.max(1, Math.round(height * HEIGHT));
      return pixels === 0 ? "" : `M${place * STEP} ${HEIGHT}v${-pixels}h${STEP - 1}v${pixels}z`;
    })
    .join("");

export function Hours({ day }: { readonly day: Day }) {
  const most = Math.max(1, ...day.traces);
  const failed = sum(day.failed);
  const words = `${exactCount(sum(day.traces))} traces in 24 hours${failed === 0 ? "" : `, ${exactCount(failed)} with errors`}`;
  return (
    <span title={words}>
      <svg className={style["hours"]} viewBox={`0 0 ${day.traces.length * STEP} ${HEIGHT}`} aria-hidden="true">
        <path d={barsPath(day.traces.map((count) => count / most))} />
        <path className={style["failed"]} d={barsPath(day.failed.map((count) => count / most))} />
      </svg>
      <span className="only-spoken">{words}</span>
    </span>
  );
}
