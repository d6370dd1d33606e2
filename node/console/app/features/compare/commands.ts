// What can be done on the comparison.
import type { Command } from "../../lib/commands";

export interface CompareActions {
  move(by: number): void;
  open(): void;
  unfold(isOpen: boolean): void;
  nextError(): void;
  step(by: 1 | -1): void;
  close(): void;
  toggleDiff(): void;
  layout(layout: "table" | "grid" | "summary"): void;
  focusFilter(): void;
  group(): void;
  add(): void;
  changeKey(): void;
  changeVersion(): void;
  /** Whether the past is shown, which nobody changes. */
  isPast(): boolean;
  swap(): void;
  undo(): void;
  redo(): void;
  copyMarkdown(): void;
  hasRows(): boolean;
  isOpen(): boolean;
  hasBase(): boolean;
  /** Whether the filter is a line of text, and not a bar with a key of its own. */
  hasFilterLine(): boolean;
  canUndo(): boolean;
  canRedo(): boolean;
}

const GROUP = "Comparison";

export const compareCommands = (actions: CompareActions): readonly Command[] => [
  { id: "compare.down", title: "Next row", group: GROUP, keys: "j", when: actions.hasRows, run: () => actions.move(1) },
  { id: "compare.up", title: "Previous row", group: GROUP, keys: "k", when: actions.hasRows, run: () => actions.move(-1) },
  { id: "compare.unfold", title: "Show the trials of the row", group: GROUP, keys: "l", when: actions.hasRows, run: () => actions.unfold(true) },
  { id: "compare.fold", title: "Hide the trials of the row", group: GROUP, keys: "h", when: actions.hasRows, run: () => actions.unfold(false) },
  { id: "compare.error", title: "Next error", group: GROUP, keys: "e", when: actions.hasRows, run: actions.nextError },
  { id: "compare.next", title: "Next pair, opened", group: GROUP, keys: "J", when: actions.isOpen, run: () => actions.step(1) },
  { id: "compare.previous", title: "Previous pair, opened", group: GROUP, keys: "K", when: actions.isOpen, run: () => actions.step(-1) },
  { id: "compare.close", title: "Close the pair", group: GROUP, keys: "Escape", when: actions.isOpen, run: actions.close },
  { id: "compare.filter", title: "Filter the rows", group: GROUP, keys: "/", when: actions.hasFilterLine, run: actions.focusFilter },
  { id: "compare.diff", title: "Show or hide differences of outputs", group: GROUP, keys: "d", when: actions.hasBase, run: actions.toggleDiff },
  { id: "compare.group", title: "Group by a path", group: GROUP, run: actions.group },
  { id: "compare.add", title: "Compare with another experiment", group: GROUP, keys: "+", run: actions.add },
  { id: "compare.key", title: "Change what pairs rows", group: GROUP, when: () => !actions.isPast(), run: actions.changeKey },
  { id: "compare.version", title: "Show an earlier state", group: GROUP, run: actions.changeVersion },
  { id: "compare.swap", title: "Swap with the base", group: GROUP, when: actions.hasBase, run: actions.swap },
  { id: "compare.undo", title: "Undo the last filter", group: GROUP, keys: "z", when: actions.canUndo, run: actions.undo },
  { id: "compare.redo", title: "Redo the filter", group: GROUP, keys: "Z", when: actions.canRedo, run: actions.redo },
  { id: "compare.copy", title: "Copy as a Markdown table", group: GROUP, keys: "Y", run: actions.copyMarkdown },
  { id: "compare.table", title: "Layout: table", group: GROUP, run: () => actions.layout("table") },
  { id: "compare.grid", title: "Layout: grid", group: GROUP, run: () => actions.layout("grid") },
  { id: "compare.summary", title: "Layout: summary", group: GROUP, run: () => actions.layout("summary") },
];
