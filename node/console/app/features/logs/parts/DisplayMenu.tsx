// The button of the panel that says how the list is displayed.
import { useId, useRef, useState, type ToggleEvent } from "react";
import { Icon } from "../../../design/Icon";
import type { DisplayProps } from "./DisplayForm";
import style from "./DisplayMenu.module.css";
import { DisplayForm } from "./later";

const GAP = 4;

/** Puts the panel below its button, at its right edge, within the window. */
function place(panel: HTMLElement, button: HTMLElement): void {
  const at = button.getBoundingClientRect();
  panel.style.top = `${at.bottom + GAP}px`;
  panel.style.left = `${Math.max(GAP, Math.min(at.right, window.innerWidth - GAP) - panel.offsetWidth)}px`;
  panel.style.maxHeight = `${window.innerHeight - at.bottom - 2 * GAP}px`;
}

export function DisplayMenu(props: DisplayProps) {
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const close = (): void => {
    panel.current?.hidePopover();
    button.current?.focus();
  };
  const settle = (): void => {
    if (panel.current !== null && button.current !== null) place(panel.current, button.current);
  };
  const onToggle = (event: ToggleEvent<HTMLDivElement>): void => {
    const opens = event.newState === "open";
    setOpen(opens);
    if (opens) settle();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={style["button"]}
        popoverTarget={id}
        aria-expanded={isOpen}
        aria-controls={id}
        aria-haspopup="dialog"
      >
        <span className={style["short"]}>
          <Icon name="sliders" />
        </span>
        <span className={style["word"]}>Display</span>
        <span className={style["long"]}>
          <Icon name="down" />
        </span>
      </button>
      <div ref={panel} id={id} popover="auto" role="dialog" aria-label="Display" className={style["panel"]} onToggle={onToggle}>
        {isOpen && <DisplayForm {...props} onDone={close} onShown={settle} />}
      </div>
    </>
  );
}

