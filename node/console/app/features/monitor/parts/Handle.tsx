// What a card is moved by: dragged with a pointer, or with the arrows of the keyboard.
import type { DragEvent, KeyboardEvent } from "react";
import { Icon } from "../../../design/Icon";
import style from "./Card.module.css";

export interface Moving {
  readonly onStart: (event: DragEvent<HTMLElement>) => void;
  readonly onEnd: () => void;
  /** Moves the card by some places. */
  readonly onStep: (by: number) => void;
  /** What makes the card a place to drop another one on. */
  readonly place: {
    readonly "data-drop": string | undefined;
    readonly onDragOver: (event: DragEvent<HTMLElement>) => void;
    readonly onDrop: (event: DragEvent<HTMLElement>) => void;
  };
}

const STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowUp: -1,
  ArrowRight: 1,
  ArrowDown: 1,
  Home: -1000,
  End: 1000,
};

export function Handle({ title, moving }: { readonly title: string; readonly moving: Moving }) {
  const onKeyDown = (event: KeyboardEvent<HTMLButtonElement>): void => {
    const by = STEPS[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    moving.onStep(by);
  };
  return (
    <button
      type="button"
      className={style["handle"]}
      draggable
      aria-label={`Move ${title}`}
      title={`Move ${title}: drag, or use the arrows`}
      data-card={title}
      onDragStart={moving.onStart}
      onDragEnd={moving.onEnd}
      onKeyDown={onKeyDown}
    >
      <Icon name="grip" />
    </button>
  );
}
