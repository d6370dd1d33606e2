// Keeps the address of the page as a signal, and changes it without loading the page again.
import { signal } from "@preact/signals";

const current = (): string => window.location.pathname + window.location.search;

/** The path and the query of the page. */
export const location = signal("/app");

/** Decides whether the page may go to an address. If not, it may call `go` later. */
export type LeavingGuard = (href: string, go: () => void) => boolean;

let guard: LeavingGuard | null = null;

/** Asks a guard before the page goes anywhere, until the returned function is called. */
export function guardLeaving(asked: LeavingGuard): () => void {
  guard = asked;
  return () => {
    if (guard === asked) guard = null;
  };
}

/** Whether the page may go to an address now. What was allowed later goes without another question. */
function isAllowed(href: string, go: () => void): boolean {
  const asked = guard;
  if (asked === null) return true;
  return asked(href, () => {
    guard = null;
    go();
  });
}

/**
 * How the history changes: by a new entry, by another address of its newest entry, or so only while the page is still
 * the same. A screen that writes its state later than it changed has to stay: people may have gone elsewhere meanwhile.
 */
export type HistoryChange = "push" | "replace" | "stay";

const pathOf = (href: string): string => href.split("?")[0] ?? "";

/**
 * Goes to an address of the console. Opening something pushes an entry of the history; selecting, sorting and typing
 * replace it, so that the button "back" leads to the page before.
 */
export function navigate(href: string, how: HistoryChange): void {
  if (href === current()) return;
  if (how === "stay" && pathOf(href) !== pathOf(current())) return;
  if (!isAllowed(href, () => navigate(href, how))) return;
  try {
    if (how === "push") window.history.pushState(null, "", href);
    else window.history.replaceState(window.history.state, "", href);
  } catch {
    // A browser refuses when somebody types very fast. The screen follows, and its address does with the next key.
  }
  location.value = href;
}

/** Returns the address that a click on a link asks for, if the console has to follow it without loading a page. */
function followed(event: MouseEvent): string | null {
  if (event.defaultPrevented || event.button !== 0) return null;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link === null || link.target !== "" || link.hasAttribute("download")) return null;
  const url = new URL(link.href, window.location.href);
  const inside = url.pathname === "/app" || url.pathname.startsWith("/app/");
  if (url.origin !== window.location.origin || !inside || url.hash !== "") return null;
  return url.pathname + url.search;
}

/** Starts to follow the history and clicks on links. */
export function startRouter(): void {
  location.value = current();
  window.addEventListener("popstate", () => {
    const href = current();
    if (isAllowed(href, () => navigate(href, "push"))) location.value = href;
    else window.history.pushState(null, "", location.peek());
  });
  document.addEventListener("click", (event) => {
    const href = followed(event);
    if (href === null) return;
    event.preventDefault();
    navigate(href, "push");
  });
}
