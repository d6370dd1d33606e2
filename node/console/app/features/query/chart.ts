// The chart of a result: which columns are its axes, how that is written in the address, and the points it has.
import type { Fields } from "../../api/narrow";
import type { ColumnKind } from "./cells";

export const CHART_KINDS = ["line", "bars"] as const;

export type ChartKind = (typeof CHART_KINDS)[number];

/** The axes of a chart, by the names of columns. */
export interface ChartAxes {
  readonly kind: ChartKind;
  readonly x: string;
  /** The column whose values are lines of their own; empty for none. */
  readonly by: string;
  readonly y: readonly string[];
}

export interface ChartColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

const escaped = (name: string): string => name.replace(/[\\,]/g, "\\$&");

/** Writes axes as one text: the kind, the x axis, the column of the lines, and the y axes, by commas. */
export const writeAxes = ({ kind, x, by, y }: ChartAxes): string => [kind, x, by, ...y].map(escaped).join(",");

/** Reads axes; null if the text is not of any. */
export function readAxes(text: string): ChartAxes | null {
  const parts = [""];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === ",") parts.push("");
    else {
      if (text[at] === "\\") at += 1;
      parts.push((parts.pop() ?? "") + (text[at] ?? ""));
    }
  }
  const [first, x = "", by = "", ...y] = parts;
  const kind = CHART_KINDS.find((one) => one === first);
  return kind === undefined || x === "" || y.length === 0 ? null : { kind, x, by, y };
}

/** The axes that fit a result: time along a line if there is a time, else bars of the first text; null for no chart. */
export function axesOf(columns: readonly ChartColumn[]): ChartAxes | null {
  const numbers = columns.filter(({ kind }) => kind === "number").map(({ name }) => name);
  const moment = columns.find(({ kind }) => kind === "moment");
  const texts = columns.filter(({ kind }) => kind === "text" || kind === "other");
  const [x, ...rest] = moment === undefined ? texts : [moment, ...texts];
  if (x === undefined) {
    const [first, ...others] = numbers;
    return first === undefined || others.length === 0 ? null : { kind: "line", x: first, by: "", y: others };
  }
  if (numbers.length === 0) return null;
  if (moment === undefined) return { kind: "bars", x: x.name, by: "", y: numbers.slice(0, 1) };
  const by = rest.find(({ kind }) => kind === "text");
  return { kind: "line", x: moment.name, by: by?.name ?? "", y: by === undefined ? numbers : numbers.slice(0, 1) };
}

/** The axes that the address names, if the result has all their columns, else those that fit. */
export function chosenAxes(text: string, columns: readonly ChartColumn[]): ChartAxes | null {
  const axes = readAxes(text);
  const has = (name: string): boolean => columns.some((column) => column.name === name);
  if (axes !== null && has(axes.x) && (axes.by === "" || has(axes.by)) && axes.y.every(has)) return axes;
  return axesOf(columns);
}

export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

export interface Lines {
  /** Milliseconds since 1970, or numbers. */
  readonly xs: readonly number[];
  readonly lines: readonly Line[];
  /** How many lines there are, of which the largest are given. */
  readonly total: number;
}

const MOST_LINES = 24;

const label = (value: unknown): string => {
  if (value === null || value === undefined) return "null";
  if (value === "") return '""';
  return typeof value === "string" ? value : JSON.stringify(value);
};

const position = (value: unknown): number | null => {
  if (typeof value === "number") return value;
  const moment = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(moment) ? null : moment;
};

const amount = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** The points of a line chart. Of two values at one place the last counts. */
export function linesOf(rows: readonly Fields[], { x, by, y }: ChartAxes): Lines {
  const byName = new Map<string, Map<number, number>>();
  const places = new Set<number>();
  for (const row of rows) {
    const at = position(row[x]);
    if (at === null) continue;
    places.add(at);
    for (const column of y) {
      const value = amount(row[column]);
      const own = by === "" ? column : y.length === 1 ? label(row[by]) : `${label(row[by])} ${column}`;
      const points = byName.get(own) ?? new Map<number, number>();
      byName.set(own, points);
      if (value !== null) points.set(at, value);
    }
  }
  const xs = [...places].sort((a, b) => a - b);
  const sum = (points: ReadonlyMap<number, number>): number => [...points.values()].reduce((all, one) => all + Math.abs(one), 0);
  const all = [...byName].map(([name, points]) => ({ name, points, size: sum(points) }));
  const kept = all.length > MOST_LINES ? all.toSorted((a, b) => b.size - a.size).slice(0, MOST_LINES) : all;
  return {
    xs,
    lines: kept.map(({ name, points }) => ({ name, values: xs.map((at) => points.get(at) ?? null) })),
    total: all.length,
  };
}

export interface Bar {
  readonly name: string;
  readonly value: number | null;
}

export interface Bars {
  readonly bars: readonly Bar[];
  readonly total: number;
  /** The largest size of a value, which fills the width. */
  readonly most: number;
}

const MOST_BARS = 200;

/** The bars of a result in its own order, one for each row. */
export function barsOf(rows: readonly Fields[], { x, y }: ChartAxes): Bars {
  const column = y[0] ?? "";
  const bars = rows.slice(0, MOST_BARS).map((row) => ({ name: label(row[x]), value: amount(row[column]) }));
  const most = bars.reduce((size, { value }) => Math.max(size, Math.abs(value ?? 0)), 0);
  return { bars, total: rows.length, most };
}
