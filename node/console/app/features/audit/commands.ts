// What can be done on the audit log by a key.
import { gridCommands, type GridState } from "../../design/GridTypes";
import type { Command } from "../../lib/commands";

interface Surroundings {
  readonly grid: GridState;
  readonly isOpen: boolean;
  readonly close: () => void;
  readonly focusFilter: () => void;
}

export function auditCommands({ grid, isOpen, close, focusFilter }: Surroundings): readonly Command[] {
  const group = "Audit log";
  return [
    ...gridCommands(grid, group, "entry").filter(({ keys }) => keys !== "x"),
    { id: "audit.filter", title: "Filter by object", group, keys: "/", run: focusFilter },
    {
      id: "audit.close",
      title: "Close the entry",
      group,
      keys: "Escape",
      when: () => isOpen && document.querySelector(":popover-open") === null,
      run: close,
    },
  ];
}
