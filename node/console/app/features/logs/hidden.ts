// The rows that lists leave out: those that are deleted, or will be in a moment.
import { computed, signal } from "@preact/signals";

export interface PendingDeletion {
  readonly keys: readonly string[];
  readonly timer: number;
}

export const pendingDeletions = signal<readonly PendingDeletion[]>([]);

export const deletedRows = signal<ReadonlySet<string>>(new Set());

export const hiddenRows = computed<ReadonlySet<string>>(
  () => new Set([...deletedRows.value, ...pendingDeletions.value.flatMap((one) => one.keys)]),
);
