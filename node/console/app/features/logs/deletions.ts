// Deletions that can be taken back: the rows leave the list at once, and the server is told ten seconds later.
import { problemOf } from "../../lib/errors";
import { toast } from "../../design/Toast";
import { deleteRows, refreshLists, type Place } from "./bulk";
import { deletedRows, pendingDeletions, type PendingDeletion } from "./hidden";

export const TAKE_BACK_MS = 10_000;

/** Asks before the page is left while a deletion waits, because it would not happen then. */
function warn(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function drop(one: PendingDeletion): void {
  pendingDeletions.value = pendingDeletions.peek().filter((other) => other !== one);
  if (pendingDeletions.peek().length === 0) window.removeEventListener("beforeunload", warn);
}

/** Says what will happen, with the way back. */
function wait(one: PendingDeletion, words: string): void {
  pendingDeletions.value = [...pendingDeletions.peek(), one];
  window.addEventListener("beforeunload", warn);
  toast(words, false, {
    title: "Take back",
    shownMs: TAKE_BACK_MS,
    run: () => {
      window.clearTimeout(one.timer);
      drop(one);
    },
  });
}

async function carryOut(one: PendingDeletion, place: Place, isTraces: boolean): Promise<void> {
  try {
    await deleteRows(place, one.keys, isTraces);
    deletedRows.value = new Set([...deletedRows.peek(), ...one.keys]);
    drop(one);
    await refreshLists(place.organization);
  } catch (error) {
    drop(one);
    toast(`The rows were not deleted. ${problemOf(error, 0).text}`, true);
  }
}

/** Does something after a while, in which a notice takes it back. */
export function startLater(words: string, run: () => Promise<void>): void {
  const one: PendingDeletion = {
    keys: [],
    timer: window.setTimeout(() => {
      drop(one);
      run().catch((error: unknown) => toast(`The deletion was not started. ${problemOf(error, 0).text}`, true));
    }, TAKE_BACK_MS),
  };
  wait(one, words);
}

/** Deletes rows after a while, in which a notice takes it back. */
export function deleteLater(place: Place, keys: readonly string[], isTraces: boolean, words: string): void {
  const one: PendingDeletion = {
    keys,
    timer: window.setTimeout(() => void carryOut(one, place, isTraces), TAKE_BACK_MS),
  };
  wait(one, `${words} will be deleted in 10 seconds.`);
}
