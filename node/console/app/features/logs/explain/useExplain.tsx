// Explains a part of the list: the button that opens the panel, its key, and what is explained.
import { useMemo, useRef, useState, type ReactNode } from "react";
import { Button } from "../../../design/Button";
import type { GridState } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { lazily } from "../../../design/Lazily";
import { useCommands, useLatest } from "../../../lib/commands";
import type { Bounds } from "../../../lib/range";
import type { Scope } from "../filter";
import type { Selection } from "./selection";

const ExplainPanel = lazily(async () => (await import("./ExplainPanel")).ExplainPanel);

interface ExplainOptions {
  readonly grid: GridState;
  /** The last scope whose filter is understood; null if none was. */
  readonly scope: Scope | null;
  /** Narrows the list by one more expression. */
  readonly onFilter: (expression: string) => void;
}

export interface Explain {
  readonly isOpen: boolean;
  readonly button: ReactNode;
  /** The panel, or null while it is closed. */
  readonly panel: ReactNode;
  readonly ofRange: (bounds: Bounds) => void;
}

/** The rows that are explained when the panel is opened: the selected ones, else those with errors. */
const startOf = (selected: ReadonlySet<string>): Selection =>
  selected.size > 0 ? { kind: "rows", ids: [...selected] } : { kind: "errors" };

export function useExplain({ grid, scope, onFilter }: ExplainOptions): Explain {
  const [selection, setSelection] = useState<Selection | null>(null);
  const place = useRef<HTMLSpanElement>(null);
  const selected = grid.selection.ids.value;
  const isOpen = selection !== null && scope !== null;
  const close = (): void => {
    setSelection(null);
    place.current?.querySelector("button")?.focus();
  };
  const toggle = useLatest((): void => {
    if (isOpen) close();
    else setSelection(startOf(grid.selection.ids.peek()));
  });
  useCommands(
    useMemo(() => [{ id: "logs.explain", title: "Explain the selection, or the errors", group: "Logs", keys: "w", run: toggle }], [toggle]),
  );
  const button = (
    <span ref={place}>
      <Button look="quiet" aria-expanded={isOpen} title={withKeys("Explain the selection, or the errors", "w")} onClick={toggle}>
        <Icon name="split" />
        Explain
      </Button>
    </span>
  );
  const panel = isOpen && (
    <ExplainPanel
      {...{ scope, selection, onFilter }}
      selected={[...selected]}
      onSelection={setSelection}
      onClose={close}
    />
  );
  return { isOpen, button, panel: panel === false ? null : panel, ofRange: (bounds) => setSelection({ kind: "time", bounds }) };
}
