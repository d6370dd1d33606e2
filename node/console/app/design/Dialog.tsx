// A dialog over the page, by the browser's own element: it holds the focus and gives it back to where it was.
import { useId, useLayoutEffect, useRef, type ReactNode } from "react";
import { IconButton } from "./Button";
import { classes } from "./classes";
import style from "./Dialog.module.css";

/** The first field of a form; of choices that exclude each other, the one that is made. */
const FIRST_FIELD = "form :is(input:not([type=radio]), input:checked, select, textarea):enabled";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** `drawer` stands at the left edge; `bare` shows no title, only speaks it. */
  readonly form?: "card" | "wide" | "drawer" | "bare";
}

export function Dialog({ title, onClose, children, form = "card" }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    dialog?.showModal();
    // The browser focuses the button that closes, which would end what has just begun.
    if (heading.current !== null && document.activeElement?.parentElement === heading.current.parentElement) {
      (dialog?.querySelector<HTMLElement>(FIRST_FIELD) ?? heading.current).focus();
    }
    return () => {
      dialog?.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      className={classes(style["dialog"], style[form])}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      <div className={style["inside"]}>
        {form === "bare" ? (
          <h2 id={titleId} className="only-spoken">
            {title}
          </h2>
        ) : (
          <header className={style["head"]}>
            <h2 id={titleId} ref={heading} tabIndex={-1}>
              {title}
            </h2>
            <IconButton icon="close" label="Close" onClick={onClose} />
          </header>
        )}
        {children}
      </div>
    </dialog>
  );
}

/** The row of buttons at the end of a dialog. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <div className={style["actions"]}>{children}</div>;
}
