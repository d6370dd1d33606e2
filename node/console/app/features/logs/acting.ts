// What dialogs do with the rows that were selected one by one.
import { problemOf } from "../../lib/errors";
import type { Dataset } from "../../api/datasets";
import { toast } from "../../design/Toast";
import { score as scoreText } from "../../lib/numbers";
import { addTag, addToDataset, assign, refreshLists, type Person, type Place } from "./bulk";
import { deleteLater } from "./deletions";
import type { Chosen } from "./parts/chosen";
import { giveScore } from "./scoring";

/** What can be done with rows, whether some by their ids or all that a filter finds. Failures are thrown. */
export interface Acting {
  readonly place: Place;
  /** The rows in words: `3 traces`. */
  readonly words: string;
  /** How many rows there are. */
  readonly count: number;
  readonly isTraces: boolean;
  readonly tag: (tag: string) => Promise<void>;
  readonly score: (name: string, value: number) => Promise<void>;
  /** Assigns the rows to a person; to nobody if there is none. */
  readonly assign: (person: Person | undefined) => Promise<void>;
  readonly addTo: (dataset: Dataset) => Promise<void>;
  readonly remove: () => void;
}

const failed = (error: unknown): void => toast(`Taking it back failed. ${problemOf(error, 0).text}`, true);

/** Says what was done, with the way back. */
function saidDone({ organization }: Place, words: string, undo: () => Promise<void>): void {
  toast(words, false, { title: "Undo", run: () => void undo().then(() => refreshLists(organization), failed) });
}

const copiedWords = (added: number, known: number, name: string): string => {
  const already = known === 0 ? "" : ` ${known === 1 ? "1 was" : `${known} were`} there already.`;
  return `${added === 1 ? "1 row was" : `${added} rows were`} added to ${name}.${already}`;
};

/** Acts on selected rows. Rows whose root never came cannot be changed, so that they are left out. */
export function actingOnRows(place: Place, chosen: Chosen, words: string): Acting {
  const ids = chosen.rows.map((row) => row.id).filter((id) => id !== "");
  const isTraces = chosen.shape === "traces";
  const { organization } = place;
  return {
    place,
    words,
    count: chosen.keys.length,
    isTraces,
    tag: async (tag) => {
      const { count, undo } = await addTag(place, ids, tag);
      await refreshLists(organization);
      if (count === 0) return toast(`All of them have the tag ${tag} already.`);
      saidDone(place, `The tag ${tag} was added to ${count === 1 ? "1 row" : `${count} rows`}.`, undo);
    },
    score: async (name, value) => {
      const { count, undo } = await giveScore(place, ids, name, value);
      await refreshLists(organization);
      saidDone(place, `${count === 1 ? "1 row has" : `${count} rows have`} ${scoreText(value)} as ${name}.`, undo);
    },
    assign: async (person) => {
      await assign(place, ids, person?.id ?? "");
      await refreshLists(organization);
      toast(person === undefined ? `Nobody has ${words} any more.` : `${person.name} has ${words} to review.`);
    },
    addTo: async (dataset) => {
      const { added, known } = await addToDataset(place, ids, dataset.id);
      toast(copiedWords(added, known, dataset.name));
    },
    remove: () => deleteLater(place, chosen.keys, isTraces, words),
  };
}
