// The registry of everything that can be done by a key, from a menu or in the palette.
import { computed, signal } from "@preact/signals";
import { useEffect, useRef } from "react";
import { isHeld, SEQUENCE_MS, step, tokenOf } from "./keys";
import { preferences } from "./preferences";

/** One thing that a person can do. */
export interface Command {
  readonly id: string;
  readonly title: string;
  /** The heading on the key sheet and in the palette. */
  readonly group: string;
  readonly keys?: string;
  /** Whether it can be done now; absent if always. */
  readonly when?: () => boolean;
  readonly run: () => void;
}

const registered = signal<readonly (readonly Command[])[]>([]);

/** All commands of the page, those of the screen after those of the frame. */
export const commands = computed(() => registered.value.flat());

export const isPossible = (command: Command): boolean => command.when?.() ?? true;

/** Adds commands until the returned function is called. */
function register(added: readonly Command[]): () => void {
  registered.value = [...registered.peek(), added];
  return () => {
    registered.value = registered.peek().filter((list) => list !== added);
  };
}

/** Adds the commands of a component while it is shown. They are replaced when `added` is another list. */
export function useCommands(added: readonly Command[]): void {
  useEffect(() => register(added), [added]);
}

/** Returns a function that always calls the newest version of `run`, and never changes itself. */
export function useLatest<Arguments extends readonly unknown[]>(
  run: (...values: Arguments) => void,
): (...values: Arguments) => void {
  const latest = useRef(run);
  latest.current = run;
  const stable = useRef((...values: Arguments) => latest.current(...values));
  return stable.current;
}

const TYPED_INTO = "input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]";

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest(`${TYPED_INTO}, [role=menu]`) !== null;

const isDialogOpen = (): boolean => document.querySelector("dialog:modal") !== null;

/** Starts to listen for keys. Nothing runs while somebody types or while a dialog is open, except what is held. */
export function startKeys(): void {
  let pending: readonly string[] = [];
  let last = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || isDialogOpen()) return;
    const token = tokenOf({
      key: event.key,
      ctrlKey: event.ctrlKey,
      metaKey: event.metaKey,
      altKey: event.altKey,
      shiftKey: event.shiftKey,
      altGraph: event.getModifierState("AltGraph"),
    });
    if (token === null) return;
    const onlyHeld = isTyping(event.target) || !preferences.value.singleKeys;
    const possible = commands
      .peek()
      .filter((command) => command.keys !== undefined && (!onlyHeld || isHeld(command.keys)) && isPossible(command));
    if (event.timeStamp - last > SEQUENCE_MS) pending = [];
    last = event.timeStamp;
    const next = step(pending, token, possible.map((command) => command.keys ?? ""));
    pending = next.pending;
    if (next.complete === null) return;
    event.preventDefault();
    possible.findLast((command) => command.keys === next.complete)?.run();
  });
}
