// Where a panel lies over the page, and what opens it. The panel itself is in Popover.tsx, which is loaded later.
import { useRef, useState } from "react";

const GAP = 4;

/** Puts a panel below an element, or above it where there is no room, and within the window. */
export function placeBeside(panel: HTMLElement, anchor: HTMLElement): void {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = panel;
  const below = at.bottom + GAP;
  const isBelow = below + height <= window.innerHeight || at.top < window.innerHeight - at.bottom;
  const top = isBelow ? below : Math.max(GAP, at.top - GAP - height);
  const left = Math.min(at.left, window.innerWidth - width - GAP);
  panel.style.top = `${top}px`;
  panel.style.left = `${Math.max(GAP, left)}px`;
  panel.style.maxHeight = `${Math.max(120, window.innerHeight - top - GAP)}px`;
}

/** Whether a panel is open, and what its opener needs: a press on it while the panel is open only closes the panel. */
export function useOpener() {
  const [isOpen, setOpen] = useState(false);
  const wasOpen = useRef(false);
  return {
    isOpen,
    open: () => setOpen(true),
    close: () => setOpen(false),
    opener: {
      "aria-haspopup": "dialog",
      "aria-expanded": isOpen,
      onPointerDown: () => {
        wasOpen.current = isOpen;
      },
      onClick: () => {
        setOpen(!wasOpen.current);
        wasOpen.current = false;
      },
    },
  } as const;
}
