// The cells that wait for their turn: some at once, those of visible rows first.

export interface CellKey {
  readonly row: string;
  readonly variant: string;
}

export function keyOf({ row, variant }: CellKey): string {
  return `${variant}:${row}`;
}

/** How many cells run at once. */
export const AT_ONCE = 8;

export class CellQueue {
  /** The waiting cells of each row; rows and cells in the order in which they were added. */
  private readonly waiting = new Map<string, Map<string, CellKey>>();
  private readonly running = new Map<string, CellKey>();
  private count = 0;

  constructor(private readonly most = AT_ONCE) {}

  get waitingCount(): number {
    return this.count;
  }

  get runningCount(): number {
    return this.running.size;
  }

  get isIdle(): boolean {
    return this.count === 0 && this.running.size === 0;
  }

  isRunning(cell: CellKey): boolean {
    return this.running.has(keyOf(cell));
  }

  /** Adds cells and returns those that were not waiting or running already. */
  add(cells: readonly CellKey[]): readonly CellKey[] {
    return cells.filter((cell) => {
      const key = keyOf(cell);
      const row = this.waiting.get(cell.row) ?? new Map<string, CellKey>();
      if (row.has(key) || this.running.has(key)) return false;
      row.set(key, cell);
      this.waiting.set(cell.row, row);
      this.count += 1;
      return true;
    });
  }

  /** Takes the next cell to run: one of the first row that is visible and waits, else of the first that waits. */
  next(visible: readonly string[]): CellKey | null {
    if (this.running.size >= this.most) return null;
    const first = visible.find((row) => this.waiting.has(row)) ?? this.waiting.keys().next().value;
    const cells = first === undefined ? undefined : this.waiting.get(first);
    const cell = cells?.values().next().value;
    if (cell === undefined) return null;
    this.forget(cell);
    this.running.set(keyOf(cell), cell);
    return cell;
  }

  /** Ends a running cell, which makes room for another one. */
  end(cell: CellKey): void {
    this.running.delete(keyOf(cell));
  }

  /** Takes a waiting cell back; false if it does not wait. */
  forget(cell: CellKey): boolean {
    const cells = this.waiting.get(cell.row);
    if (cells?.delete(keyOf(cell)) !== true) return false;
    if (cells.size === 0) this.waiting.delete(cell.row);
    this.count -= 1;
    return true;
  }

  /** Takes all waiting cells back. */
  clear(): readonly CellKey[] {
    const all = [...this.waiting.values()].flatMap((cells) => [...cells.values()]);
    this.waiting.clear();
    this.count = 0;
    return all;
  }
}
