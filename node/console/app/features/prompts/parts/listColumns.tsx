// The columns of the lists of prompts and of functions.
import type { PromptRecord } from "../../../api/prompts";
import type { GridColumn } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { exactCount, NOTHING, shortCount } from "../../../lib/numbers";
import { navigate } from "../../../lib/router";
import { runtimeOf, typeInWords, type Listed } from "../listing";
import type { Kind } from "../url";
import listStyle from "./list.module.css";
import style from "./parts.module.css";
import { Environments, When } from "./Words";

export interface ListActions {
  href(slug: string): string;
  details(record: PromptRecord): void;
  remove(record: PromptRecord): void;
}

const Count = ({ count }: { readonly count: number | null }) => <span title={exactCount(count)}>{shortCount(count)}</span>;

const Faint = ({ text }: { readonly text: string }) => (text === "" ? <span className={style["faint"]}>{NOTHING}</span> : <>{text}</>);

function Actions({ record, actions }: { readonly record: PromptRecord; readonly actions: ListActions }) {
  return (
    <div className={listStyle["rowActions"]}>
      <Menu
        label={`Actions of ${record.name}`}
        tabIndex={-1}
        isAlone
        button={<Icon name="more" />}
        items={[
          { id: "open", title: "Open", run: () => navigate(actions.href(record.slug), "push") },
          { id: "details", title: "Name and description", run: () => actions.details(record) },
          { id: "delete", title: "Delete", run: () => actions.remove(record) },
        ]}
      />
    </div>
  );
}

const nameColumn = (actions: ListActions, title: string): GridColumn<Listed> => ({
  id: "name",
  title,
  width: 160,
  grow: 2,
  cell: ({ record }) => (
    <a href={actions.href(record.slug)} tabIndex={-1} className={style["link"]} title={record.description || record.name}>
      {record.name}
    </a>
  ),
});

const kindColumns = (kind: Kind): readonly GridColumn<Listed>[] =>
  kind === "prompts"
    ? [{ id: "model", title: "Model", width: 150, grow: 1, cell: ({ model }) => <Faint text={model} /> }]
    : [
        { id: "type", title: "Type", width: 140, cell: ({ record }) => <Faint text={typeInWords(record)} /> },
        { id: "runs", title: "Runs on", width: 130, grow: 1, cell: ({ record, model }) => <Faint text={runtimeOf(record) || model} /> },
      ];

export const listColumns = (kind: Kind, actions: ListActions): readonly GridColumn<Listed>[] => [
  nameColumn(actions, kind === "prompts" ? "Prompt" : "Function"),
  { id: "slug", title: "Slug", width: 140, grow: 1, cell: ({ record }) => <code>{record.slug}</code> },
  ...kindColumns(kind),
  { id: "versions", title: "Versions", width: 80, align: "end", cell: ({ versions }) => <Count count={versions} /> },
  {
    id: "environments",
    title: "Environments",
    width: 170,
    cell: ({ pinned }) => (pinned === null || pinned.length === 0 ? <Faint text="" /> : <span className={style["chips"]}><Environments pinned={pinned} /></span>),
  },
  { id: "changed", title: "Last change", width: 130, align: "end", cell: ({ changed }) => <When at={changed} /> },
  { id: "uses", title: "Uses in 7 d", width: 90, align: "end", cell: ({ uses }) => <Count count={uses} /> },
  { id: "actions", title: "Actions", width: 72, cell: ({ record }) => <Actions record={record} actions={actions} /> },
];
