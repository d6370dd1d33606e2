// Moves the focus to a screen after going there, so that the keyboard and screen readers start at its heading.

let isFollowing = false;

/** Called when another screen is gone to: from now on the focus follows. The first screen of a page takes none. */
export function followWithFocus(): void {
  isFollowing = true;
}

/** Called when a screen is there. What took the focus inside the screen keeps it. */
export function focusScreen(): void {
  if (!isFollowing) return;
  const main = document.querySelector("main");
  const focused = document.activeElement;
  if (main === null || (focused !== main && main.contains(focused) && focused?.tagName !== "H1")) return;
  (main.querySelector<HTMLElement>("h1") ?? main).focus();
}
