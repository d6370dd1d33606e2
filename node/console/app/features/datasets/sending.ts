// Sends batches of an import: a row that the server refuses is left out, and the others are sent again.
import { eachPage, insertRows } from "../../api/datasets";
import { ApiError, withoutTail } from "../../lib/errors";
import { textOrNull, type Fields } from "../../api/narrow";
import { canonical } from "./cells";
import type { DuplicatesBy, Known, Sent } from "./importing";
import type { DatasetPlace } from "./queries";
import { refusalOf } from "./saving";

const isTooLarge = (error: unknown): boolean => error instanceof ApiError && error.status === 413;

/** Whether an answer is about what was sent, so that it will not pass by itself. */
const isRefusal = (error: unknown): boolean => error instanceof ApiError && (error.status === 400 || error.status === 422);

/** Sends rows, and finds those that keep the others from being written. */
export async function sendRows({ organization, id }: DatasetPlace, events: readonly Fields[], signal: AbortSignal): Promise<Sent> {
  const refused: { readonly index: number; readonly message: string }[] = [];
  const open = [events.map((event, index) => ({ event, index }))];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (part.length === 0) continue;
    try {
      await insertRows(organization, id, part.map(({ event }) => event), signal);
    } catch (error) {
      const refusal = refusalOf(error);
      const bad = refusal === null ? undefined : part[refusal.index];
      if (refusal !== null && bad !== undefined) {
        refused.push({ index: bad.index, message: refusal.message });
        open.push(part.filter((one) => one !== bad));
      } else if ((isTooLarge(error) || isRefusal(error)) && part.length > 1) {
        const half = Math.ceil(part.length / 2);
        open.push(part.slice(half), part.slice(0, half));
      } else if (error instanceof ApiError && (isTooLarge(error) || isRefusal(error))) {
        const [only] = part;
        if (only !== undefined) refused.push({ index: only.index, message: withoutTail(error.message) });
      } else throw error;
    }
  }
  return { taken: events.length - refused.length, refused };
}

/** Reads by what the rows of a dataset are recognized. */
export async function readKnown(place: DatasetPlace, by: DuplicatesBy, signal: AbortSignal): Promise<Known> {
  const known: Known = new Map();
  if (by === "none") return known;
  const wanted = by === "id" ? ["id"] : ["id", "input"];
  await eachPage(place.organization, place.id, wanted, "", (rows) => {
    for (const row of rows) {
      const id = textOrNull(row, "id") ?? "";
      known.set(by === "id" ? id : canonical(row["input"]), id);
    }
  }, signal);
  return known;
}
