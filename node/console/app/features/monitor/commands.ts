// What can be done on the monitor by a key.
import type { Command } from "../../lib/commands";

interface Surroundings {
  readonly undo: () => void;
  readonly redo: () => void;
  readonly again: () => void;
  readonly add: () => void;
  readonly chooseVersion: () => void;
}

export function monitorCommands({ undo, redo, again, add, chooseVersion }: Surroundings): readonly Command[] {
  const group = "Monitor";
  return [
    { id: "monitor.add", title: "Add a chart", group, keys: "a", run: add },
    { id: "monitor.again", title: "Read the cards again", group, keys: "r", run: again },
    { id: "monitor.version", title: "Show an earlier state", group, run: chooseVersion },
    { id: "monitor.undo", title: "Undo the last change", group, keys: "z", run: undo },
    { id: "monitor.redo", title: "Redo the change", group, keys: "Z", run: redo },
  ];
}
