// The open trace beside the list: as wide as it was dragged, folded by `]`, over the list on narrow screens.
import { useRef, useState, type ComponentType, type KeyboardEvent, type PointerEvent } from "react";
import type { TracePanelProps } from "../../../lib/trace";
import style from "./Panel.module.css";

const LEAST = 360;
const STEP = 32;

/** The width of the panel in pixels, kept while the page is open; 0 for the width by default. */
let chosen = 0;

interface PanelProps {
  readonly panel: TracePanelProps;
  readonly TracePanel: ComponentType<TracePanelProps>;
}

const most = (): number => Math.max(LEAST, window.innerWidth - 320);

export function Panel({ panel, TracePanel }: PanelProps) {
  const [width, setWidth] = useState(chosen);
  const element = useRef<HTMLElement>(null);
  const resize = (next: number): void => {
    chosen = Math.round(Math.min(Math.max(next, LEAST), most()));
    setWidth(chosen);
  };
  const measured = (): number => element.current?.getBoundingClientRect().width ?? LEAST;
  const onPointerDown = (event: PointerEvent<HTMLElement>): void => {
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>): void => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    resize((element.current?.getBoundingClientRect().right ?? 0) - event.clientX);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const by = event.key === "ArrowLeft" ? STEP : event.key === "ArrowRight" ? -STEP : 0;
    if (by === 0) return;
    event.preventDefault();
    resize(measured() + by);
  };
  return (
    <aside
      ref={element}
      className={style["panel"]}
      aria-label="Open trace"
      style={width === 0 ? undefined : { flexBasis: `${width}px` }}
    >
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label="Width of the open trace"
        aria-valuenow={width || Math.round(window.innerWidth / 2)}
        aria-valuemin={LEAST}
        aria-valuemax={most()}
        tabIndex={0}
        className={style["edge"]}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onKeyDown={onKeyDown}
      />
      <div className={style["inside"]}>
        <TracePanel {...panel} />
      </div>
    </aside>
  );
}
