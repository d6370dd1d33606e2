// The bars of the lines in view, drawn at once. They are decoration: each line says its times in words.
import { useLayoutEffect, useRef, useState } from "react";
import { shareOf, type Window } from "../tree/bars";
import type { Line } from "../tree/lines";
import type { TraceTree } from "../tree/model";
import { useTheme } from "./theme";
import style from "./Tree.module.css";

const BAR_PX = 8;
const BAR_MIN_PX = 2;

interface BarsProps {
  readonly tree: TraceTree;
  readonly lines: readonly Line[];
  readonly window: Window;
  readonly critical: ReadonlySet<number>;
  readonly top: number;
  readonly rowHeight: number;
}

/** The colours of bars, which the style sheet has as those of marks. */
function coloursOf(canvas: HTMLElement): Readonly<Record<"plain" | "critical" | "bad", string>> {
  const styles = getComputedStyle(canvas);
  return { plain: styles.color, critical: styles.outlineColor, bad: styles.caretColor };
}

function draw(canvas: HTMLCanvasElement, width: number, { tree, lines, window: shown, critical, rowHeight }: BarsProps): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  const scale = globalThis.devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(lines.length * rowHeight * scale);
  context.scale(scale, scale);
  const colours = coloursOf(canvas);
  lines.forEach((line, index) => {
    const from = Math.max(shareOf(shown, line.begin), 0) * width;
    const to = Math.min(shareOf(shown, line.end), 1) * width;
    if (to < 0 || from > width) return;
    const isCritical = critical.has(line.span) && line.others.length === 0;
    context.globalAlpha = tree.isOpen[line.span] === 1 || line.others.length > 0 ? 0.55 : 1;
    context.fillStyle = line.hasError ? colours.bad : isCritical ? colours.critical : colours.plain;
    const left = Math.min(from, width - BAR_MIN_PX);
    context.beginPath();
    context.roundRect(left, index * rowHeight + (rowHeight - BAR_PX) / 2, Math.max(to - from, BAR_MIN_PX), BAR_PX, 2);
    context.fill();
  });
}

export function Bars(props: BarsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const theme = useTheme();
  const { lines, top, rowHeight } = props;
  useLayoutEffect(() => {
    const box = canvas.current?.parentElement;
    if (box == null) return undefined;
    const measure = (): void => setWidth(box.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, width, props);
  }, [width, theme, props.tree, lines, props.window.from, props.window.to, props.critical, rowHeight]);
  const height = lines.length * rowHeight;
  return (
    <div className={style["canvases"]} style={{ top: `${top}px`, height: `${height}px` }} aria-hidden="true">
      <div className={style["canvasBox"]}>
        <canvas ref={canvas} className={style["canvas"]} style={{ height: `${height}px` }} />
      </div>
    </div>
  );
}
