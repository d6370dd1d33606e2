// What can be done on the logs by a key.
import { gridCommands, type GridState } from "../../design/GridTypes";
import type { Command } from "../../lib/commands";
import type { BulkAction } from "./parts/chosen";

interface Surroundings {
  readonly grid: GridState;
  readonly undo: { undo(): boolean; redo(): boolean };
  /** Whether a trace is open, whose own keys go first. */
  readonly isOpen: boolean;
  /** Whether the past is shown, which nobody changes. */
  readonly isPast: boolean;
  readonly act: (action: BulkAction) => void;
  readonly chooseVersion: () => void;
  readonly togglePanel: () => void;
  readonly close: () => void;
}

export function logsCommands({ grid, undo, isOpen, isPast, act, chooseVersion, togglePanel, close }: Surroundings): readonly Command[] {
  const group = "Logs";
  const hasRows = (): boolean =>
    !isPast && (grid.selection.ids.peek().size > 0 || (!isOpen && grid.cursor.at.peek() !== null));
  const bulk = (id: Exclude<BulkAction, "none">, title: string, keys?: string): Command => ({
    id: `logs.${id}`,
    title,
    group,
    ...(keys === undefined ? {} : { keys }),
    when: hasRows,
    run: () => act(id),
  });
  return [
    ...gridCommands(grid, group, "row"),
    bulk("tag", "Tag the selected rows", "#"),
    bulk("score", "Score the selected rows"),
    bulk("dataset", "Add the selected rows to a dataset", "d"),
    bulk("assign", "Assign the selected rows"),
    bulk("delete", "Delete the selected rows"),
    { id: "logs.undo", title: "Undo the last change of the filter", group, keys: "z", run: () => void undo.undo() },
    { id: "logs.redo", title: "Redo the change of the filter", group, keys: "Z", run: () => void undo.redo() },
    { id: "logs.version", title: "Show an earlier state", group, run: chooseVersion },
    {
      id: "logs.close",
      title: "Close the open trace",
      group,
      keys: "Escape",
      when: () => isOpen && document.querySelector(":popover-open") === null,
      run: close,
    },
    {
      id: "logs.panel",
      title: "Fold or unfold the open trace",
      group,
      keys: "]",
      when: () => isOpen,
      run: togglePanel,
    },
  ];
}
