// The list of what an editor can complete, at its caret.
import { useLayoutEffect, useRef } from "react";
import { classes } from "./classes";
import type { EditorOption } from "./EditorTypes";
import style from "./Editor.module.css";

/** The space between the caret and the list. */
const GAP = 4;

interface EditorListProps {
  readonly id: string;
  readonly options: readonly EditorOption[];
  readonly chosen: number;
  /** Where the caret is in the window. */
  readonly at: DOMRect;
  readonly onAccept: (option: EditorOption) => void;
}

export const optionId = (id: string, index: number): string => `${id}-${index}`;

/** The place of a list: below the caret, or above it where there is more room. */
function placed(list: HTMLElement, at: DOMRect): void {
  const { width, height } = list.getBoundingClientRect();
  const isBelow = at.bottom + GAP + height <= window.innerHeight || at.top < window.innerHeight / 2;
  list.style.left = `${Math.max(GAP, Math.min(at.left, window.innerWidth - width - GAP))}px`;
  list.style.top = `${isBelow ? at.bottom + GAP : Math.max(GAP, at.top - GAP - height)}px`;
}

export function EditorList({ id, options, chosen, at, onAccept }: EditorListProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (box.current !== null) placed(box.current, at);
  }, [options, at]);
  useLayoutEffect(() => {
    document.getElementById(optionId(id, chosen))?.scrollIntoView({ block: "nearest" });
  }, [id, chosen]);
  const info = options[chosen]?.info;
  return (
    <div ref={box} className={style["popup"]}>
      <ul id={id} role="listbox" aria-label="Completions" className={style["list"]}>
        {options.map((option, index) => (
          <li
            key={`${option.kind} ${option.label}`}
            id={optionId(id, index)}
            role="option"
            aria-selected={index === chosen}
            className={classes(style["option"], index === chosen && style["chosen"])}
            onMouseDown={(event) => {
              event.preventDefault();
              onAccept(option);
            }}
          >
            <span className={style["label"]}>{option.label}</span>
            {option.detail !== undefined && <span className={style["detail"]}>{option.detail}</span>}
          </li>
        ))}
      </ul>
      {info !== undefined && <p className={style["info"]}>{info}</p>}
    </div>
  );
}
