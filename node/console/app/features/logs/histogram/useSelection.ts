// The bars that are selected in the histogram, by pointer and by keys.
import { useRef, useState, type KeyboardEvent, type PointerEvent } from "react";

/** A bar and the one from which the selection started; both the same while a single bar is current. */
export interface Selected {
  readonly anchor: number;
  readonly at: number;
}

interface Options {
  readonly count: number;
  /** The index of the bar at a place of the window. */
  readonly barAt: (x: number) => number;
  readonly onSelect: (selected: Selected, isExplained: boolean) => void;
}

const clamp = (index: number, count: number): number => Math.min(Math.max(index, 0), count - 1);

const STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowRight: 1,
  PageUp: -10,
  PageDown: 10,
  Home: -Infinity,
  End: Infinity,
};

/** How far a pointer has to move before a press becomes a drag, in pixels. */
const DRAG_PX = 3;

export function useSelection({ count, barAt, onSelect }: Options) {
  const [selected, setSelected] = useState<Selected | null>(null);
  const pressed = useRef<{ readonly x: number; readonly bar: number; isDrag: boolean } | null>(null);
  const kept = selected === null ? null : { anchor: clamp(selected.anchor, count), at: clamp(selected.at, count) };
  const onPointerDown = (event: PointerEvent<HTMLElement>): void => {
    if (event.button !== 0 || count === 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    pressed.current = { x: event.clientX, bar: barAt(event.clientX), isDrag: false };
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>): void => {
    if (count === 0) return;
    const at = barAt(event.clientX);
    const press = pressed.current;
    if (press !== null && Math.abs(event.clientX - press.x) > DRAG_PX) press.isDrag = true;
    const anchor = press?.isDrag === true ? press.bar : at;
    if (kept?.at !== at || kept.anchor !== anchor) setSelected({ anchor, at });
  };
  const onPointerUp = (event: PointerEvent<HTMLElement>): void => {
    const press = pressed.current;
    pressed.current = null;
    if (press?.isDrag !== true) return;
    const at = barAt(event.clientX);
    setSelected(null);
    onSelect({ anchor: press.bar, at }, event.altKey);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.ctrlKey || event.metaKey || count === 0) return;
    const by = STEPS[event.key];
    if (by !== undefined) {
      const at = clamp((kept?.at ?? (by > 0 && by < Infinity ? -1 : count)) + by, count);
      setSelected({ anchor: event.shiftKey ? (kept?.anchor ?? at) : at, at });
    } else if (event.key === "Enter" && kept !== null) {
      setSelected(null);
      onSelect(kept, event.altKey);
    } else if (event.key === "Escape" && kept !== null) setSelected(null);
    else return;
    event.preventDefault();
  };
  return {
    selected: kept,
    handlers: {
      onPointerDown,
      onPointerMove,
      onPointerUp,
      onPointerCancel: () => {
        pressed.current = null;
        setSelected(null);
      },
      onPointerLeave: () => {
        if (pressed.current === null) setSelected(null);
      },
      onBlur: () => setSelected(null),
      onKeyDown,
    },
  };
}
