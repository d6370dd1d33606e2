// The cells of a playground as signals: one each, so that an answer that arrives draws one cell again.
import { batch, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Cell } from "./cells";
import { keyOf, type CellKey } from "./queue";

/** How often cells that change are drawn, in milliseconds: many change at once, and a drawing has its price. */
const DRAWN_MS = 120;

export class CellStore {
  private readonly cells = new Map<string, Cell>();
  private readonly drawn = new Map<string, Signal<Cell | null>>();
  private readonly changed = new Set<string>();
  private readonly count = signal(0);
  private timer: number | null = null;

  /** Changes whenever cells have changed. */
  readonly changes: ReadonlySignal<number> = this.count;

  /** A cell as it is drawn. */
  at(cell: CellKey): ReadonlySignal<Cell | null> {
    return this.signalOf(keyOf(cell));
  }

  /** A cell as it is now. */
  get(cell: CellKey): Cell | null {
    return this.cells.get(keyOf(cell)) ?? null;
  }

  set(cell: CellKey, state: Cell | null): void {
    const key = keyOf(cell);
    if (state === null) this.cells.delete(key);
    else this.cells.set(key, state);
    this.changed.add(key);
    this.timer ??= window.setTimeout(() => this.draw(), DRAWN_MS);
  }

  private signalOf(key: string): Signal<Cell | null> {
    const found = this.drawn.get(key) ?? signal(this.cells.get(key) ?? null);
    this.drawn.set(key, found);
    return found;
  }

  private draw(): void {
    this.timer = null;
    batch(() => {
      for (const key of this.changed) this.signalOf(key).value = this.cells.get(key) ?? null;
      this.changed.clear();
      this.count.value += 1;
    });
  }
}
