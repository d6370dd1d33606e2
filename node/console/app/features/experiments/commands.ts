// What can be done on the list of experiments.
import { gridCommands, type GridState } from "../../design/GridTypes";
import type { Command } from "../../lib/commands";

export interface ExperimentsActions {
  focusFilter(): void;
  compare(): void;
  makeBaseline(): void;
  undo(): void;
  openActions(): void;
  details(): void;
  remove(): void;
  canCompare(): boolean;
  canUndo(): boolean;
  hasRow(): boolean;
  /** Whether the past is shown, which nobody changes. */
  isPast(): boolean;
  chooseVersion(): void;
}

const GROUP = "Experiments";

export function experimentsCommands(grid: GridState, actions: ExperimentsActions): readonly Command[] {
  const canChange = (): boolean => actions.hasRow() && !actions.isPast();
  return [
    { id: "experiments.filter", title: "Search the experiments", group: GROUP, keys: "/", run: actions.focusFilter },
    ...gridCommands(grid, GROUP, "experiment"),
    { id: "experiments.compare", title: "Compare the selected experiments", group: GROUP, keys: "c", when: actions.canCompare, run: actions.compare },
    { id: "experiments.baseline", title: "Make the experiment the baseline", group: GROUP, keys: "b", when: canChange, run: actions.makeBaseline },
    { id: "experiments.undo", title: "Take the baseline back", group: GROUP, keys: "z", when: actions.canUndo, run: actions.undo },
    { id: "experiments.details", title: "Name, tags and metadata", group: GROUP, when: canChange, run: actions.details },
    { id: "experiments.delete", title: "Delete the experiment", group: GROUP, when: canChange, run: actions.remove },
    { id: "experiments.actions", title: "Actions of the experiment", group: GROUP, keys: ".", when: actions.hasRow, run: actions.openActions },
    { id: "experiments.version", title: "Show an earlier state", group: GROUP, run: actions.chooseVersion },
  ];
}
