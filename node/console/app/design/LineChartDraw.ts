// Draws lines on a canvas with uPlot. Its legend is not used: it has one of its own in the page.
import uPlot from "uplot";
import type { Zone } from "../lib/preferences";
import { dashOf, momentTicks, tickText } from "./LineChartLogic";

export interface DrawnLine {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly colour: number;
  readonly isShown: boolean;
}

export interface Drawing {
  readonly xs: readonly number[];
  readonly lines: readonly DrawnLine[];
  /** Whether the x axis is of milliseconds since 1970. */
  readonly isTime: boolean;
  readonly zone: Zone;
  readonly tick: ((value: number) => string) | undefined;
  readonly canSelect: boolean;
  readonly onCursor: (index: number | null) => void;
  readonly onRange: (from: number, to: number) => void;
  readonly onPoint: ((index: number, line: string | null) => void) | undefined;
}

/** Resolves a colour of the page, which a canvas cannot by itself. */
function resolved(host: HTMLElement, colour: string): string {
  const probe = document.createElement("span");
  probe.style.color = colour;
  host.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function axesOf(host: HTMLElement, { isTime, zone, tick = tickText }: Drawing): uPlot.Axis[] {
  const text = resolved(host, "var(--text-2)");
  const line = resolved(host, "var(--line)");
  const font = `11px ${getComputedStyle(host).fontFamily}`;
  const common = { stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, gap: 4 };
  const moments = (_: uPlot, values: number[], __: number, ___: number, step: number): string[] => [
    ...momentTicks(values, step, zone),
  ];
  return [
    { ...common, space: 72, size: isTime ? 40 : 28, ...(isTime ? { values: moments } : {}) },
    { ...common, size: 56, space: 36, values: (_: uPlot, values: number[]) => values.map((value) => tick(value)) },
  ];
}

function seriesOf(host: HTMLElement, lines: readonly DrawnLine[], points: number): uPlot.Series[] {
  return lines.map(({ name, colour, isShown }, index) => ({
    label: name,
    show: isShown,
    stroke: resolved(host, `var(--line-${colour})`),
    width: 1.5,
    dash: [...dashOf(index)],
    spanGaps: false,
    points: points <= 24 ? { show: true, size: 5 } : { show: true, size: 4, filter: lonely },
  }));
}

/** Returns the points that have no neighbour: no line leads to them, so that they are drawn themselves. */
function lonely(plot: uPlot, index: number): number[] {
  const values = plot.data[index] ?? [];
  const isThere = (at: number): boolean => values[at] !== null && values[at] !== undefined;
  return Array.from({ length: values.length }, (_, at) => at).filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1));
}

/** The line whose value is nearest to the pointer. */
function nearestLine(plot: uPlot, lines: readonly DrawnLine[], index: number): string | null {
  const top = plot.cursor.top ?? 0;
  let found: { readonly name: string; readonly distance: number } | null = null;
  for (const { name, values, isShown } of lines) {
    const value = values[index];
    if (!isShown || value === null || value === undefined) continue;
    const distance = Math.abs(plot.valToPos(value, "y") - top);
    if (found === null || distance < found.distance) found = { name, distance };
  }
  return found === null || found.distance > 24 ? null : found.name;
}

/** The y axis starts at zero, so that heights compare. */
function yRange(_: uPlot, least: number | null, most: number | null): uPlot.Range.MinMax {
  if (least === null || most === null) return [0, 1];
  return uPlot.rangeNum(Math.min(0, least), Math.max(0, most) || 1, 0.08, true);
}

/** Draws a chart in an element, and returns the plot. */
export function draw(host: HTMLElement, drawing: Drawing): uPlot {
  const { xs, lines, isTime, canSelect, onCursor, onRange, onPoint } = drawing;
  const options: uPlot.Options = {
    width: Math.max(host.clientWidth, 200),
    height: Math.max(host.clientHeight, 120),
    ms: 1,
    legend: { show: false },
    scales: { x: { time: isTime }, y: { range: yRange } },
    axes: axesOf(host, drawing),
    series: [{}, ...seriesOf(host, lines, xs.length)],
    cursor: {
      y: false,
      points: { size: 7 },
      drag: { x: canSelect, y: false, setScale: false },
      focus: { prox: 24 },
    },
    hooks: {
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 3) return;
          onRange(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
  const plot = new uPlot(options, [[...xs], ...lines.map(({ values }) => [...values])], host);
  if (onPoint !== undefined) {
    plot.over.addEventListener("click", () => {
      const index = plot.cursor.idx ?? null;
      if (index !== null) onPoint(index, nearestLine(plot, lines, index));
    });
  }
  return plot;
}
