// The overview of a trace's time: the longest bar of each pixel, and the part that is shown. A drag zooms; keys do too.
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { duration } from "../../../lib/numbers";
import type { OpenTrace } from "../useTrace";
import { windowOf } from "../useTrace";
import { miniBars, momentAt, pathBars, panned, shareOf, wholeOf, zoomed, type Window } from "../tree/bars";
import type { TraceTree } from "../tree/model";
import style from "./Minimap.module.css";
import { useTheme } from "./theme";

/** Levels that have a line of their own at most, and at least. */
const LEVELS_MAX = 12;
const LEVELS_MIN = 3;
const BAR_PX = 2;
/** The line below the bars, for the critical path. */
const PATH_PX = 5;

interface Size {
  readonly width: number;
  readonly levels: number;
}

const heightOf = (levels: number): number => levels * (BAR_PX + 1) + PATH_PX;
const PAN = 0.2;
const ZOOM = 0.5;
/** Least share of the width that a drag has to cover. */
const DRAG_MIN = 0.005;

/** How many levels of a trace have a line of their own. */
function levelsOf(tree: TraceTree): number {
  let depth = 0;
  for (const one of tree.depth) depth = Math.max(depth, one);
  return Math.min(Math.max(depth + 1, LEVELS_MIN), LEVELS_MAX);
}

/** Draws the bars in the colours of the theme. */
function draw(canvas: HTMLCanvasElement, tree: TraceTree, critical: ReadonlySet<number>, { width, levels }: Size): void {
  const height = heightOf(levels);
  const context = canvas.getContext("2d");
  if (context === null) return;
  const scale = window.devicePixelRatio;
  canvas.width = width * scale;
  canvas.height = height * scale;
  context.scale(scale, scale);
  const styles = getComputedStyle(canvas);
  const [plain, bad, path] = [styles.color, styles.outlineColor, styles.caretColor];
  for (const bar of miniBars(tree, width, levels)) {
    context.fillStyle = bar.hasError ? bad : plain;
    context.fillRect(bar.x, bar.level * (BAR_PX + 1), bar.width, BAR_PX);
  }
  context.fillStyle = path;
  for (const { x, width: length } of pathBars(tree, critical, width)) context.fillRect(x, height - 2, length, 2);
}

function useWidth(): readonly [{ current: HTMLDivElement | null }, number] {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const box = element.current;
    if (box === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.floor(box.clientWidth)));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

/** What keys do to the window. */
function pressed(key: string, window: Window, whole: Window): Window | null | undefined {
  const middle = momentAt(window, 0.5);
  switch (key) {
    case "ArrowLeft":
      return panned(window, whole, -PAN);
    case "ArrowRight":
      return panned(window, whole, PAN);
    case "+":
    case "=":
    case "ArrowUp":
      return zoomed(window, whole, middle, ZOOM);
    case "-":
    case "ArrowDown":
      return zoomed(window, whole, middle, 1 / ZOOM);
    case "Home":
    case "0":
      return null;
    default:
      return undefined;
  }
}

/** What a drag over the map chooses. */
function useDrag(trace: OpenTrace, whole: Window) {
  const [drag, setDrag] = useState<readonly [from: number, to: number] | null>(null);
  const shareAt = (event: PointerEvent<HTMLElement>): number => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  const end = (): void => {
    if (drag !== null) {
      const [from, to] = [Math.min(...drag), Math.max(...drag)];
      trace.setWindow(to - from < DRAG_MIN ? null : { from: momentAt(whole, from), to: momentAt(whole, to) });
    }
    setDrag(null);
  };
  const handlers = {
    onPointerDown: (event: PointerEvent<HTMLElement>): void => {
      event.currentTarget.setPointerCapture(event.pointerId);
      const at = shareAt(event);
      setDrag([at, at]);
    },
    onPointerMove: (event: PointerEvent<HTMLElement>): void => {
      if (drag !== null) setDrag([drag[0], shareAt(event)]);
    },
    onPointerUp: end,
    onPointerCancel: (): void => setDrag(null),
  };
  return { drag, handlers };
}

interface MinimapProps {
  readonly trace: OpenTrace;
  readonly tree: TraceTree;
  readonly critical: ReadonlySet<number>;
}

export function Minimap({ trace, tree, critical }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [element, width] = useWidth();
  const theme = useTheme();
  const whole = useMemo(() => wholeOf(tree), [tree]);
  const levels = useMemo(() => levelsOf(tree), [tree]);
  const { drag, handlers } = useDrag(trace, whole);
  const shown = windowOf(trace);
  useEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, tree, critical, { width, levels });
  }, [tree, critical, width, levels, theme]);
  const [from, to] = drag ?? [shareOf(whole, shown.from), shareOf(whole, shown.to)];
  const isWhole = drag === null && trace.window === null;
  return (
    <div
      ref={element}
      className={style["minimap"]}
      role="slider"
      tabIndex={0}
      aria-label="Shown part of the trace's time"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(shareOf(whole, shown.from) * 100)}
      aria-valuetext={`${duration((shown.from - whole.from) * 1000)} to ${duration((shown.to - whole.from) * 1000)}`}
      title="Drag to zoom in. Arrows move and zoom, 0 shows all."
      {...handlers}
      onKeyDown={(event: KeyboardEvent) => {
        const next = pressed(event.key, shown, whole);
        if (next === undefined || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        event.stopPropagation();
        trace.setWindow(next);
      }}
    >
      <canvas ref={canvas} className={style["bars"]} style={{ height: `${heightOf(levels)}px` }} aria-hidden="true" />
      {!isWhole && (
        <span
          className={style["window"]}
          style={{
            insetInlineStart: `${Math.min(from, to) * 100}%`,
            inlineSize: `${Math.max(Math.abs(to - from) * 100, 0.2)}%`,
          }}
        />
      )}
    </div>
  );
}
