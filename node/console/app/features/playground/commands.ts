// What can be done in an open playground by a key and in the palette.
import type { Command } from "../../lib/commands";

const ACTIONS = {
  run: ["Run all cells", "mod+Enter"],
  stop: ["Stop the run", "s"],
  retry: ["Retry what failed", "R"],
  down: ["Next row", "j"],
  up: ["Previous row", "k"],
  open: ["Open the cell", "o"],
  close: ["Close the panel", "Escape"],
  diff: ["Show differences to the first column", "d"],
  prompts: ["Add prompts", "n"],
  models: ["Add models to all prompts", "m"],
  rows: ["Choose the rows", "i"],
  scorers: ["Choose the scorers", "c"],
  experiment: ["Save as experiments", "e"],
  undo: ["Undo", "z"],
  redo: ["Redo", "Z"],
} as const;

export type Action = keyof typeof ACTIONS;

export const titleOf = (action: Action): string => ACTIONS[action][0];

export const keysOf = (action: Action): string => ACTIONS[action][1];

const isAction = (id: string): id is Action => id in ACTIONS;

/** The commands. `can` says what is possible now. */
export const playgroundCommands = (run: (action: Action) => void, can: (action: Action) => boolean): readonly Command[] =>
  Object.keys(ACTIONS)
    .filter(isAction)
    .map((action) => ({
      id: `playground.${action}`,
      title: titleOf(action),
      group: "Playground",
      keys: keysOf(action),
      when: () => can(action),
      run: () => run(action),
    }));
