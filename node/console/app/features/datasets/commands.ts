// What can be done in an open dataset.
import type { Command } from "../../lib/commands";

export interface DatasetActions {
  addRow(): void;
  save(): void;
  fill(): void;
  undo(): void;
  redo(): void;
  focusFilter(): void;
  importRows(): void;
  move(by: number): void;
  select(): void;
  remove(): void;
  closeRow(): void;
  hasRow(): boolean;
  hasCell(): boolean;
  hasSelected(): boolean;
  isEditable(): boolean;
}

export const datasetCommands = (actions: DatasetActions): readonly Command[] => {
  const { isEditable, hasCell, hasSelected } = actions;
  const group = "Dataset";
  return [
    { id: "dataset.new", title: "New row", group, keys: "n", when: isEditable, run: actions.addRow },
    { id: "dataset.save", title: "Save the edits", group, keys: "mod+s", when: isEditable, run: actions.save },
    { id: "dataset.fill", title: "Fill down", group, keys: "mod+d", when: () => isEditable() && hasCell(), run: actions.fill },
    { id: "dataset.undo", title: "Undo", group, keys: "z", when: isEditable, run: actions.undo },
    { id: "dataset.redo", title: "Redo", group, keys: "Z", when: isEditable, run: actions.redo },
    { id: "dataset.import", title: "Import rows", group, keys: "i", when: isEditable, run: actions.importRows },
    { id: "dataset.filter", title: "Search or filter the rows", group, keys: "/", run: actions.focusFilter },
    { id: "dataset.down", title: "Next row", group, keys: "j", run: () => actions.move(1) },
    { id: "dataset.up", title: "Previous row", group, keys: "k", run: () => actions.move(-1) },
    { id: "dataset.select", title: "Select the row", group, keys: "x", when: hasCell, run: actions.select },
    { id: "dataset.close", title: "Close the row", group, keys: "Escape", when: actions.hasRow, run: actions.closeRow },
    { id: "dataset.delete", title: "Delete the selected rows", group, when: () => isEditable() && hasSelected(), run: actions.remove },
  ];
};
