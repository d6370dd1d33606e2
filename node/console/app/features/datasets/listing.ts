// Which datasets the list shows, and what of them.
import type { Dataset, DatasetFill, DatasetUse } from "../../api/datasets";
import { momentOf } from "../../lib/version";

export interface ListedDataset {
  readonly dataset: Dataset;
  /** The number of rows; null while it is not known. */
  readonly rows: number | null;
  /** When its newest row was written, or when it was made. */
  readonly changed: Date | null;
  readonly uses: readonly DatasetUse[];
  readonly snapshots: number | null;
}

interface Sources {
  readonly datasets: readonly Dataset[];
  readonly fills: ReadonlyMap<string, DatasetFill> | undefined;
  readonly uses: readonly DatasetUse[] | undefined;
  readonly snapshots: ReadonlyMap<string, number> | undefined;
}

function groupedUses(uses: readonly DatasetUse[]): ReadonlyMap<string, DatasetUse[]> {
  const groups = new Map<string, DatasetUse[]>();
  for (const use of uses) {
    const group = groups.get(use.datasetId);
    if (group === undefined) groups.set(use.datasetId, [use]);
    else group.push(use);
  }
  return groups;
}

const timeOf = (moment: Date | null): number => moment?.getTime() ?? 0;

/** The datasets whose names or descriptions contain a text, the last changed first. */
export function listed({ datasets, fills, uses, snapshots }: Sources, filter: string): readonly ListedDataset[] {
  const wanted = filter.trim().toLowerCase();
  const groups = groupedUses(uses ?? []);
  return datasets
    .filter(({ name, description }) => `${name}\n${description}`.toLowerCase().includes(wanted))
    .map((dataset): ListedDataset => {
      const fill = fills?.get(dataset.id);
      const last = fill?.last ?? null;
      return {
        dataset,
        rows: fills === undefined ? null : (fill?.rows ?? 0),
        changed: last === null ? new Date(dataset.created) : momentOf(last),
        uses: groups.get(dataset.id) ?? [],
        snapshots: snapshots === undefined ? null : (snapshots.get(dataset.id) ?? 0),
      };
    })
    .sort((a, b) => timeOf(b.changed) - timeOf(a.changed) || (a.dataset.name < b.dataset.name ? -1 : 1));
}
