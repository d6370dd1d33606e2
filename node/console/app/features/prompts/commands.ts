// What can be done in the list of prompts and on the page of one.
import type { Command } from "../../lib/commands";

export interface PageActions {
  save(): void;
  run(): void;
  /** Shows a version that is older by some places; newer for a negative number. */
  older(by: number): void;
  compare(): void;
  isEditable(): boolean;
  isRunnable(): boolean;
}

export const pageCommands = (actions: PageActions, group: string): readonly Command[] => [
  { id: "prompt.save", title: "Save a version", group, keys: "mod+s", when: actions.isEditable, run: actions.save },
  { id: "prompt.run", title: "Run", group, keys: "mod+Enter", when: actions.isRunnable, run: actions.run },
  { id: "prompt.older", title: "Older version", group, keys: "j", run: () => actions.older(1) },
  { id: "prompt.newer", title: "Newer version", group, keys: "k", run: () => actions.older(-1) },
  { id: "prompt.compare", title: "Compare with the version before", group, keys: "c", run: actions.compare },
];

export interface ListCommandActions {
  readonly add: (() => void) | null;
  focusFilter(): void;
}

export const listCommands = ({ add, focusFilter }: ListCommandActions, group: string): readonly Command[] => [
  ...(add === null ? [] : [{ id: "prompts.new", title: "New prompt", group, keys: "n", run: add }]),
  { id: "prompts.filter", title: "Filter the list", group, keys: "/", run: focusFilter },
];
