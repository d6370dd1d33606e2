// A panel that lies over the page beside what opened it, by the browser's own popover.
import { useLayoutEffect, useRef, type ReactNode, type RefObject } from "react";
import { classes } from "./classes";
import style from "./Popover.module.css";
import { placeBeside } from "./PopoverLogic";

interface PopoverProps {
  /** What the panel is for. */
  readonly label: string;
  /** What opened it, which gets the focus back. */
  readonly anchor: RefObject<HTMLElement | null>;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** Whether the panel has no padding of its own, as lists have it. */
  readonly isBare?: boolean;
}

/** Is open as long as it is rendered. A press outside and the escape key close it. */
export function Popover({ label, anchor, onClose, children, isBare = false }: PopoverProps) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const panel = element.current;
    const opener = anchor.current;
    if (panel === null) return undefined;
    panel.showPopover();
    const place = (): void => {
      if (opener !== null) placeBeside(panel, opener);
    };
    place();
    const first = panel.querySelector<HTMLElement>("[data-first]") ?? panel.querySelector<HTMLElement>("input, button");
    first?.focus();
    const resized = new ResizeObserver(place);
    resized.observe(panel);
    window.addEventListener("resize", place);
    return () => {
      resized.disconnect();
      window.removeEventListener("resize", place);
      const hasFocus = panel.contains(document.activeElement) || document.activeElement === document.body;
      if (panel.matches(":popover-open")) panel.hidePopover();
      if (hasFocus && opener?.isConnected === true) opener.focus();
    };
  }, []);
  return (
    <div
      ref={element}
      popover="auto"
      role="dialog"
      aria-label={label}
      className={classes(style["panel"], !isBare && style["padded"])}
      onToggle={(event) => {
        if (event.newState === "closed") onClose();
      }}
    >
      {children}
    </div>
  );
}
