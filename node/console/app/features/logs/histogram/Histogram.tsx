// Rows over time as bars, those with errors stacked below. A drag, or shift and arrows, chooses a range.
import { useQuery } from "@tanstack/react-query";
import { useLayoutEffect, useRef, useState, type RefObject } from "react";
import { isAbort, problemOf } from "../../../lib/errors";
import { faultOf } from "../../../api/query";
import { classes } from "../../../design/classes";
import { FailureLine } from "../../../design/FailureLine";
import { exactCount } from "../../../lib/numbers";
import { preferences, type Zone } from "../../../lib/preferences";
import { rangeBetween } from "../../../lib/range";
import { isTooMuch, NEEDS_LESS } from "../faults";
import { rowWord, type Scope } from "../filter/scope";
import type { Extent } from "../../../lib/buckets";
import { clipped, extentWords, spanned, ticksOf, type Bar } from "./bars";
import style from "./Histogram.module.css";
import type { HistogramProps } from "./props";
import { barsQuery, extentOf, totalsQuery, type Drawn, type Totals } from "./queries";
import { useSelection, type Selected } from "./useSelection";

const HEIGHT = 56;
const TICK_PX = 110;

/** The width of an element in pixels, which follows the window. */
function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const node = element.current;
    if (node === null) return undefined;
    const measure = (): void => setWidth(node.clientWidth);
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(node);
    return () => resized.disconnect();
  }, []);
  return width;
}

/** How a moment becomes a place in pixels. */
const placing = ({ from, to }: Extent, width: number) => (moment: number): number =>
  ((moment - from) / (to - from)) * width;

interface BarsProps {
  readonly drawn: Drawn;
  readonly width: number;
  readonly selected: Selected | null;
}

function Bars({ drawn: { bars, extent }, width, selected }: BarsProps) {
  const place = placing(extent, width);
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const heightOf = (count: number): number => (count === 0 ? 0 : Math.max(2, (count / most) * (HEIGHT - 4)));
  const chosen = selected === null ? null : spanned(bars, selected.anchor, selected.at, extent);
  return (
    <svg className={style["bars"]} width={width} height={HEIGHT} aria-hidden="true">
      {chosen !== null && (
        <rect
          className={style["chosen"]}
          x={place(chosen.from)}
          y={0}
          width={Math.max(1, place(chosen.to) - place(chosen.from))}
          height={HEIGHT}
        />
      )}
      {bars.map((bar) => {
        if (bar.count === 0) return null;
        const { from, to } = clipped(bar, extent);
        const x = place(from);
        const size = { x, width: Math.max(1, place(to) - x - 1) };
        const all = heightOf(bar.count);
        const failed = bar.errors === 0 ? 0 : Math.max(2, (bar.errors / bar.count) * all);
        return (
          <g key={bar.start}>
            <rect className={style["good"]} {...size} y={HEIGHT - all} height={all - failed} />
            <rect className={style["bad"]} {...size} y={HEIGHT - failed} height={failed} />
          </g>
        );
      })}
      <line className={style["ground"]} x1={0} x2={width} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
    </svg>
  );
}

function Axis({ drawn, width, zone }: { readonly drawn: Drawn; readonly width: number; readonly zone: Zone }) {
  const place = placing(drawn.extent, width);
  const ticks = ticksOf(drawn.extent, Math.max(2, Math.floor(width / TICK_PX)), zone, drawn.tzOffset);
  return (
    <div className={style["axis"]} aria-hidden="true">
      {ticks.map(({ at, label }) => {
        const x = place(at);
        return x > width - 40 ? null : (
          <span key={at} className={style["tick"]} style={{ left: `${x}px` }}>
            {label}
          </span>
        );
      })}
    </div>
  );
}

const sum = (bars: readonly Bar[], of: "count" | "errors"): number => bars.reduce((all, bar) => all + bar[of], 0);

function selectedWords(drawn: Drawn, selected: Selected, scope: Scope, zone: Zone): string {
  const { bars, extent } = drawn;
  const [first, last] = [Math.min(selected.anchor, selected.at), Math.max(selected.anchor, selected.at)];
  const inside = bars.slice(first, last + 1);
  const chosen = spanned(bars, first, last, extent);
  const [count, errors] = [sum(inside, "count"), sum(inside, "errors")];
  // A trace with spans in two bars stands in both, so that a sum over bars may count it twice.
  const about = inside.length > 1 && scope.shape === "traces" && count > 0 ? "at most " : "";
  const time = chosen === null ? "" : extentWords(chosen, zone);
  return `${time}: ${about}${exactCount(count)} ${rowWord(scope.shape, count)}, ${exactCount(errors)} with errors`;
}

interface TipProps {
  readonly words: string;
  readonly at: number;
  readonly width: number;
}

function Tip({ words, at, width }: TipProps) {
  const isRight = at > width / 2;
  const side = isRight ? { right: `${width - at}px` } : { left: `${at}px` };
  return (
    <div className={style["tip"]} style={side} aria-hidden="true">
      {words}
    </div>
  );
}

interface ChartProps extends HistogramProps {
  readonly drawn: Drawn;
  readonly summary: string;
  readonly isOld: boolean;
}

function Chart({ scope, drawn, summary, isOld, onRange, onExplain }: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const width = useWidth(element);
  const { zone } = preferences.value;
  const { bars, extent } = drawn;
  const barAt = (x: number): number => {
    const left = element.current?.getBoundingClientRect().left ?? 0;
    const moment = extent.from + ((x - left) / Math.max(1, width)) * (extent.to - extent.from);
    const found = bars.findIndex((bar) => moment < bar.end);
    return found < 0 ? bars.length - 1 : found;
  };
  const { selected, handlers } = useSelection({
    count: bars.length,
    barAt,
    onSelect: ({ anchor, at }, isExplained) => {
      const chosen = spanned(bars, anchor, at, extent);
      if (chosen === null) return;
      if (isExplained && onExplain !== undefined) {
        onExplain({ from: new Date(chosen.from).toISOString(), to: new Date(chosen.to).toISOString() });
      } else onRange(rangeBetween(Math.floor(chosen.from), Math.ceil(chosen.to)));
    },
  });
  const words = selected === null ? "" : selectedWords(drawn, selected, scope, zone);
  const current = selected === null ? undefined : bars[selected.at];
  return (
    <>
      <div
        {...handlers}
        ref={element}
        role="slider"
        tabIndex={0}
        className={classes(style["chart"], isOld && style["old"])}
        aria-label={summary}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, bars.length - 1)}
        aria-valuenow={selected?.at ?? 0}
        aria-valuetext={words === "" ? "No bar is chosen. Arrows move, shift extends, enter sets the range." : words}
      >
        {width > 0 && <Bars drawn={drawn} width={width} selected={selected} />}
        {current !== undefined && (
          <Tip words={words} at={placing(extent, width)((current.start + current.end) / 2)} width={width} />
        )}
      </div>
      {width > 0 && <Axis drawn={drawn} width={width} zone={zone} />}
    </>
  );
}

function summaryOf(scope: Scope, totals: Totals | undefined, extent: Extent, zone: Zone): string {
  const time = `from ${extentWords(extent, zone)}`;
  const name = scope.shape === "traces" ? "Traces over time" : "Spans over time";
  if (totals === undefined) return `${name}, ${time}`;
  const rows = `${exactCount(totals.count)} ${rowWord(scope.shape, totals.count)}`;
  return `${name}: ${rows}, ${exactCount(totals.errors)} with errors, ${time}`;
}

/** The moment up to which a range without an end is drawn: that of its last change. */
function usePresent(scope: Scope): number {
  const present = useRef({ bounds: scope.bounds, at: Date.now() });
  const { from, to } = present.current.bounds;
  if (from !== scope.bounds.from || to !== scope.bounds.to) present.current = { bounds: scope.bounds, at: Date.now() };
  return present.current.at;
}

const NO_EXTENT: Extent = { from: 0, to: 1000 };

export function Histogram(props: HistogramProps) {
  const { scope } = props;
  const { zone } = preferences.value;
  const present = usePresent(scope);
  const totals = useQuery(totalsQuery(scope));
  const isUnbounded = scope.bounds.from === null;
  const known = isUnbounded && totals.isPlaceholderData ? undefined : totals.data;
  const extent = extentOf(scope, known, present);
  const tzOffset = zone === "utc" ? 0 : new Date(present).getTimezoneOffset();
  // The totals come first, so that the facets beside the list do not wait for the bars.
  const isDue = extent !== null && !totals.isPending;
  const bars = useQuery({ ...barsQuery(scope, extent ?? NO_EXTENT, tzOffset), enabled: isDue });
  const error = bars.error ?? totals.error;
  const again = (): void => {
    void totals.refetch();
    void bars.refetch();
  };
  if (error !== null && !isAbort(error) && !bars.isFetching) {
    if (faultOf(error) !== null) {
      return <p className={classes(style["frame"], style["unread"])}>There are no counts, because the filter cannot be understood.</p>;
    }
    return (
      <div className={classes(style["frame"], style["unread"])}>
        <FailureLine
          words={isTooMuch(error) ? "Too much data to count over time" : "The counts over time could not be read"}
          hint={isTooMuch(error) ? NEEDS_LESS : undefined}
          problem={problemOf(error, Date.now())}
          onRetry={again}
        />
      </div>
    );
  }
  if (bars.data === undefined) return <div className={classes(style["frame"], style["waiting"])} aria-busy="true" />;
  const isOld = bars.isPlaceholderData;
  const summary = summaryOf(scope, totals.isPlaceholderData ? undefined : totals.data, bars.data.extent, zone);
  const isEmpty = !isOld && bars.data.bars.every((bar) => bar.count === 0);
  return (
    <div className={style["frame"]} aria-busy={isOld}>
      <Chart {...props} drawn={bars.data} summary={summary} isOld={isOld} />
      {isEmpty && <p className={style["nothing"]}>Nothing in this range</p>}
    </div>
  );
}
