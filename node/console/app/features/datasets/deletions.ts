// Deletions of rows that can be taken back: the rows leave the grid at once, and the server is told ten seconds later.
import { computed, signal } from "@preact/signals";
import { chunksOf, insertRows } from "../../api/datasets";
import { problemOf } from "../../lib/errors";
import { toast } from "../../design/Toast";
import { exactCount } from "../../lib/numbers";
import type { DatasetPlace } from "./queries";

export const TAKE_BACK_MS = 10_000;

interface Pending {
  readonly ids: readonly string[];
  readonly timer: number;
}

const pending = signal<readonly Pending[]>([]);
const deleted = signal<ReadonlySet<string>>(new Set());

/** The ids of the rows that the grid leaves out. */
export const hiddenRows = computed<ReadonlySet<string>>(
  () => new Set([...deleted.value, ...pending.value.flatMap((one) => one.ids)]),
);

/** Asks before the page is left while a deletion waits, because it would not happen then. */
function warn(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function drop(one: Pending): void {
  pending.value = pending.peek().filter((other) => other !== one);
  if (pending.peek().length === 0) window.removeEventListener("beforeunload", warn);
}

async function carryOut(one: Pending, { organization, id }: DatasetPlace, onDone: () => void): Promise<void> {
  try {
    for (const chunk of chunksOf(one.ids)) {
      await insertRows(organization, id, chunk.map((row) => ({ id: row, _object_delete: true })));
    }
    deleted.value = new Set([...deleted.peek(), ...one.ids]);
    drop(one);
    onDone();
  } catch (error) {
    drop(one);
    toast(`The rows were not deleted. ${problemOf(error, 0).text}`, true);
  }
}

/** Deletes rows after a while, in which a notice takes it back. */
export function deleteLater(place: DatasetPlace, ids: readonly string[], onDone: () => void): void {
  const one: Pending = { ids, timer: window.setTimeout(() => void carryOut(one, place, onDone), TAKE_BACK_MS) };
  pending.value = [...pending.peek(), one];
  window.addEventListener("beforeunload", warn);
  toast(`${ids.length === 1 ? "1 row" : `${exactCount(ids.length)} rows`} will be deleted in 10 seconds.`, false, {
    title: "Take back",
    shownMs: TAKE_BACK_MS,
    run: () => {
      window.clearTimeout(one.timer);
      drop(one);
    },
  });
}
