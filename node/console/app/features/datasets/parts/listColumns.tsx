// The columns of the list of datasets.
import type { GridColumn } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { toast } from "../../../design/Toast";
import { copyText } from "../../../lib/clipboard";
import { exactCount, NOTHING, shortCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { navigate } from "../../../lib/router";
import { fullMoment, now, shortMoment } from "../../../lib/time";
import style from "../list.module.css";
import type { ListedDataset } from "../listing";

export interface ListActions {
  href(name: string): string;
  details(one: ListedDataset): void;
  remove(one: ListedDataset): void;
}

export async function copied(text: string, what: string): Promise<void> {
  const isDone = await copyText(text);
  toast(isDone ? `The ${what} is copied.` : "The browser refused to copy.", !isDone);
}

/** A moment that follows the clock and the zone by itself. */
export function When({ at }: { readonly at: Date | null }) {
  return <span title={fullMoment(at)}>{shortMoment(at, now.value, preferences.value.zone)}</span>;
}

function Count({ count }: { readonly count: number | null }) {
  if (count === null || count === 0) return <span className={style["faint"]}>{count === null ? NOTHING : "0"}</span>;
  return <span title={exactCount(count)}>{shortCount(count)}</span>;
}

function Actions({ one, actions }: { readonly one: ListedDataset; readonly actions: ListActions }) {
  const { name, id } = one.dataset;
  return (
    <div className={style["actions"]}>
      <Menu
        label={`Actions of ${name}`}
        tabIndex={-1}
        isAlone
        button={<Icon name="more" />}
        items={[
          { id: "open", title: "Open", run: () => navigate(actions.href(name), "push") },
          { id: "details", title: "Name and description", run: () => actions.details(one) },
          { id: "name", title: "Copy the name", run: () => void copied(name, "name") },
          { id: "id", title: "Copy the id", run: () => void copied(id, "id") },
          { id: "delete", title: "Delete", run: () => actions.remove(one) },
        ]}
      />
    </div>
  );
}

export const listColumns = (actions: ListActions): readonly GridColumn<ListedDataset>[] => [
  {
    id: "name",
    title: "Dataset",
    width: 160,
    grow: 1,
    cell: ({ dataset }) => (
      <a href={actions.href(dataset.name)} tabIndex={-1} className={style["name"]} title={dataset.name}>
        {dataset.name}
      </a>
    ),
  },
  {
    id: "description",
    title: "Description",
    width: 160,
    grow: 2,
    cell: ({ dataset }) =>
      dataset.description === "" ? (
        <span className={style["faint"]}>{NOTHING}</span>
      ) : (
        <span className={style["description"]}>{dataset.description}</span>
      ),
    preview: ({ dataset }) => (dataset.description.length > 60 ? dataset.description : null),
  },
  { id: "rows", title: "Rows", width: 80, align: "end", cell: ({ rows }) => <Count count={rows} /> },
  { id: "changed", title: "Last change", width: 130, align: "end", cell: ({ changed }) => <When at={changed} /> },
  { id: "snapshots", title: "Snapshots", width: 90, align: "end", cell: ({ snapshots }) => <Count count={snapshots} /> },
  {
    id: "uses",
    title: "Experiments",
    width: 100,
    align: "end",
    cell: ({ uses }) => <Count count={uses.length} />,
    preview: ({ uses }) => (uses.length === 0 ? null : uses.slice(0, 12).map(({ name }) => name).join("\n")),
  },
  { id: "actions", title: "Actions", width: 72, cell: (one) => <Actions one={one} actions={actions} /> },
];
