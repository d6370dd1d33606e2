// Lines over time or over numbers, with a legend that hides lines and a cursor that keys move.
import "uplot/dist/uPlot.min.css";
import { useEffect, useId, useLayoutEffect, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import type uPlot from "uplot";
import { preferences } from "../lib/preferences";
import { classes } from "./classes";
import { draw } from "./LineChartDraw";
import { coloursOf, dashOf, momentText, valueText } from "./LineChartLogic";
import style from "./LineChart.module.css";

export interface ChartLine {
  readonly name: string;
  /** One value for each x; null for a gap. */
  readonly values: readonly (number | null)[];
  /** What its colour says; absent for one that goes by the name. */
  readonly tone?: "accent" | "bad";
}

export interface LineChartProps {
  readonly label: string;
  /** Milliseconds since 1970 if `isTime`, else numbers; ascending. */
  readonly xs: readonly number[];
  readonly isTime: boolean;
  readonly lines: readonly ChartLine[];
  /** Writes a value; by default as a number. */
  readonly format?: (value: number | null | undefined) => string;
  /** Writes a value at the axis; by default as a number. */
  readonly tick?: (value: number) => string;
  /** Called with the ends of a range that was dragged, or chosen by `shift` and arrows and `enter`. */
  readonly onRange?: (from: number, to: number) => void;
  /** Called with a point that was clicked, or chosen by `enter`: its x, and its line if one is near. */
  readonly onPoint?: (x: number, line: string | null) => void;
}

/** Changes whenever the page changes between light and dark. */
function useScheme(): string {
  const query = "(prefers-color-scheme: dark)";
  const [isDark, setDark] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const follow = (): void => setDark(media.matches);
    follow();
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  return `${preferences.value.theme} ${isDark}`;
}

interface LegendProps {
  readonly lines: readonly ChartLine[];
  readonly colours: ReadonlyMap<string, number>;
  readonly hidden: ReadonlySet<string>;
  readonly at: number | null;
  readonly format: (value: number | null | undefined) => string;
  readonly onToggle: (name: string) => void;
}

function Legend({ lines, colours, hidden, at, format, onToggle }: LegendProps) {
  return (
    <ul className={style["legend"]} aria-label="Lines">
      {lines.map(({ name, values }, index) => {
        const colour = colours.get(name) ?? 0;
        const isHidden = hidden.has(name);
        return (
          <li key={name}>
            <button
              type="button"
              className={classes(style["entry"], isHidden && style["hidden"])}
              aria-pressed={!isHidden}
              title={isHidden ? `Show ${name}` : `Hide ${name}`}
              onClick={() => onToggle(name)}
            >
              <svg className={style["sample"]} viewBox="0 0 24 8" aria-hidden="true">
                <path d="M0 4h24" stroke={`var(--line-${colour})`} strokeWidth="2" strokeDasharray={dashOf(index).join(" ")} />
              </svg>
              <span className={style["name"]}>{name}</span>
              {at !== null && <span className={style["value"]}>{format(values[at])}</span>}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** Keeps the plot in step with what it shows and with the size of its place. */
function usePlot(props: LineChartProps, hidden: ReadonlySet<string>, onCursor: (index: number | null) => void) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const { xs, isTime, lines } = props;
  const zone = preferences.value.zone;
  const scheme = useScheme();
  useLayoutEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const colours = coloursOf(lines);
    const { onRange, onPoint } = latest.current;
    plot.current = draw(element, {
      xs,
      isTime,
      zone,
      lines: lines.map((line) => ({ ...line, colour: colours.get(line.name) ?? 0, isShown: !hidden.has(line.name) })),
      tick: latest.current.tick,
      canSelect: onRange !== undefined,
      onCursor,
      onRange: (from, to) => latest.current.onRange?.(from, to),
      onPoint:
        onPoint === undefined ? undefined : (index, line) => latest.current.onPoint?.(latest.current.xs[index] ?? 0, line),
    });
    const observer = new ResizeObserver(() => {
      plot.current?.setSize({ width: Math.max(element.clientWidth, 200), height: Math.max(element.clientHeight, 120) });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [xs, lines, isTime, zone, scheme, hidden]);
  return { host, plot };
}

/** The place of the cursor, which keys move, and the range that they select. */
function useKeys(props: LineChartProps, plot: RefObject<uPlot | null>, at: number | null, setAt: (at: number) => void) {
  const { xs, onRange, onPoint } = props;
  const [anchor, setAnchor] = useState<number | null>(null);
  const last = xs.length - 1;
  const place = (index: number): void => {
    const chart = plot.current;
    if (chart !== null) chart.setCursor({ left: chart.valToPos(xs[index] ?? 0, "x"), top: chart.over.clientHeight / 2 });
    setAt(index);
  };
  const take = (index: number): void => {
    if (anchor === null || anchor === index) onPoint?.(xs[index] ?? 0, null);
    else onRange?.(xs[Math.min(anchor, index)] ?? 0, xs[Math.max(anchor, index)] ?? 0);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const from = at ?? (event.key === "ArrowLeft" ? last + 1 : -1);
    const steps: Readonly<Record<string, number>> = {
      ArrowRight: from + 1,
      ArrowLeft: from - 1,
      PageDown: from + 10,
      PageUp: from - 10,
      Home: 0,
      End: last,
    };
    const target = steps[event.key];
    if (target !== undefined && last >= 0) {
      setAnchor(event.shiftKey && onRange !== undefined ? (anchor ?? at) : null);
      place(Math.min(Math.max(target, 0), last));
    } else if (event.key === "Enter" && at !== null) take(at);
    else return;
    event.preventDefault();
  };
  return { anchor, onKeyDown };
}

export function LineChart(props: LineChartProps) {
  const { label, xs, isTime, lines, format = valueText, onRange } = props;
  const [cursor, setCursor] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const { host, plot } = usePlot(props, hidden, setCursor);
  const at = cursor !== null && cursor < xs.length ? cursor : null;
  const { anchor, onKeyDown } = useKeys(props, plot, at, setCursor);
  const helpId = useId();
  const zone = preferences.value.zone;
  const xText = (index: number): string => (isTime ? momentText(xs[index] ?? 0, zone) : valueText(xs[index]));
  const range = anchor !== null && at !== null && anchor !== at ? `${xText(anchor)} to ` : "";
  const place = at === null ? "" : range + xText(at);
  const shown = lines.filter(({ name }) => !hidden.has(name));
  const values = at === null ? "" : shown.map((line) => `${line.name} ${format(line.values[at])}`).join(", ");
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  return (
    <figure className={style["chart"]} aria-label={label}>
      <div
        className={style["plot"]}
        role="slider"
        tabIndex={0}
        aria-label={`Cursor of the chart ${label}`}
        aria-describedby={helpId}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, xs.length - 1)}
        aria-valuenow={at ?? 0}
        aria-valuetext={at === null ? "No place" : `${place}: ${values}`}
        onKeyDown={onKeyDown}
      >
        <div ref={host} className={style["host"]} aria-hidden="true" />
      </div>
      <figcaption className={style["caption"]}>
        <span className={style["moment"]}>{place}</span>
        <span id={helpId} className="only-spoken">
          Arrows move the cursor.{onRange !== undefined && " Shift and arrows select a range, Enter takes it."}
        </span>
        <Legend
          lines={lines}
          colours={coloursOf(lines)}
          hidden={hidden}
          at={at}
          format={format}
          onToggle={toggle}
        />
      </figcaption>
    </figure>
  );
}
