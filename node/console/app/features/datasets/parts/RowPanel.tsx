// The panel that shows one row in full, where it came from, and what was written to it.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { DatasetRow } from "../../../api/datasets";
import { Button, IconButton } from "../../../design/Button";
import { Copy } from "../../../design/Copy";
import { Empty } from "../../../design/Empty";
import { withKeys } from "../../../design/Kbd";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { momentOf } from "../../../lib/version";
import { blockOf, FIELDS, tagsOf, type Field } from "../cells";
import { valueOf } from "../edits";
import { historyQuery, wholeRowQuery } from "../rowQueries";
import type { Desk } from "../useDesk";
import { When } from "./listColumns";
import style from "./RowPanel.module.css";

const MOST = 100_000;

const TITLES: Readonly<Record<Field, string>> = { input: "Input", expected: "Expected", metadata: "Metadata", tags: "Tags" };

function FieldBlock({ field, value, misfit }: { readonly field: Field; readonly value: unknown; readonly misfit: string | null }) {
  const text = value === null || value === undefined ? "" : field === "tags" ? tagsOf(value).join(", ") : blockOf(value);
  return (
    <section className={style["field"]} aria-label={TITLES[field]}>
      <div className={style["fieldHead"]}>
        <h3>{TITLES[field]}</h3>
        {text !== "" && <Copy text={text} what={`the ${field}`} />}
      </div>
      {text === "" ? <p className={style["faint"]}>-</p> : <pre>{text.length > MOST ? `${text.slice(0, MOST)}…` : text}</pre>}
      {text.length > MOST && <p className={style["faint"]}>This is the start of it. Copy it to have all.</p>}
      {misfit !== null && <p className={style["misfit"]}>Does not fit the schema. {misfit}</p>}
    </section>
  );
}

const ACTIONS: Readonly<Record<string, string>> = { upsert: "Written", merge: "Changed", delete: "Deleted" };

function RowHistory({ desk, id }: { readonly desk: Desk; readonly id: string }) {
  const { place, change, rows } = desk;
  const found = useQuery(historyQuery(place, id, rows.last)).data ?? [];
  if (found.length === 0) return null;
  return (
    <section className={style["field"]} aria-label="History">
      <h3>History</h3>
      <ul>
        {found.map(({ transaction, action, fields }) => (
          <li key={transaction} className={style["change"]}>
            <span>
              {ACTIONS[action] ?? action}
              {action === "merge" && fields.length > 0 && ` ${fields.join(", ")}`}
            </span>
            <span className={style["faint"]}>
              <When at={momentOf(transaction)} />
            </span>
            <Button look="quiet" onClick={() => change({ version: transaction, compare: "" })}>
              Show
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Row({ desk, row }: { readonly desk: Desk; readonly row: DatasetRow }) {
  const { context, isEditable, store } = desk;
  const edit = isEditable ? store.history.value.present.rows.get(row.id) : undefined;
  const href = context.originHref(row);
  return (
    <>
      {FIELDS.map((field) => {
        const value = valueOf(row, edit, field);
        return <FieldBlock key={field} field={field} value={value} misfit={context.misfit(field, value)} />;
      })}
      {row.origin !== null && (
        <section className={style["field"]} aria-label="Origin">
          <h3>Origin</h3>
          <p>{href === null ? `${row.origin.kind}, row ${row.origin.id}` : <a href={href}>Open the row that it was copied from</a>}</p>
        </section>
      )}
    </>
  );
}

export function RowPanel({ desk }: { readonly desk: Desk }) {
  const { state, place, request, change, rows, editing } = desk;
  const id = state.row;
  const query = useQuery(wholeRowQuery(place, id, request.version, request.version === "" ? rows.last : ""));
  const unsaved = desk.isEditable && editing.editOf(id)?.base === null ? editing.byId.get(id) : undefined;
  return (
    <aside className={style["panel"]} aria-label={`Row ${id}`}>
      <header className={style["head"]}>
        <h2>
          <code>{id}</code>
        </h2>
        <Copy text={id} what="the id" />
        <IconButton icon="close" label="Close the row" hint={withKeys("Close the row", "Escape")} onClick={() => change({ row: "" })} />
      </header>
      <div className={style["inside"]}>
        {unsaved === undefined ? (
          <Loaded
            reading={readingOf(query)}
            skeleton={<Skeleton lines={[[10], [40], [10], [40]]} />}
            onSignIn={() => void askToSignIn().then(() => query.refetch())}
          >
            {(row) =>
              row === null ? (
                <Empty>The dataset has no row with this id{request.version === "" ? "" : " at this version"}.</Empty>
              ) : (
                <>
                  <Row desk={desk} row={row} />
                  <RowHistory desk={desk} id={id} />
                </>
              )
            }
          </Loaded>
        ) : (
          <Row desk={desk} row={unsaved} />
        )}
      </div>
    </aside>
  );
}
