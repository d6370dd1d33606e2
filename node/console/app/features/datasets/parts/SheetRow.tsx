// A row of the grid of cells. It draws itself again when it is edited, selected, or has the current cell.
import { memo, useLayoutEffect, useMemo, useRef, type RefObject } from "react";
import type { ReadonlySignal } from "@preact/signals";
import type { DatasetRow } from "../../../api/datasets";
import { classes } from "../../../design/classes";
import { NOTHING } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { chatOf, isField, lineOf, tagsOf, type Field } from "../cells";
import { valueOf, type EditedRow } from "../edits";
import { COLUMNS, TITLES, type Column, type Sheet } from "../sheet";
import style from "./Sheet.module.css";

/** What rows are drawn with, the same for all of them. */
export interface RowContext {
  readonly sheet: Sheet;
  readonly editOf: (id: string) => ReadonlySignal<EditedRow | undefined>;
  readonly isMoved: (id: string) => ReadonlySignal<boolean>;
  /** What does not fit the schema of a field; null if nothing. */
  readonly misfit: (field: Field, value: unknown) => string | null;
  readonly originHref: (row: DatasetRow) => string | null;
  /** The cell that has to take the focus as soon as it is drawn. */
  readonly wanted: RefObject<boolean>;
  readonly isEditable: boolean;
}

interface RowProps {
  readonly row: DatasetRow;
  readonly index: number;
  readonly top: number;
  readonly isFirstStop: boolean;
  readonly context: RowContext;
}

function Created({ at }: { readonly at: string | null }) {
  if (at === null) return <span className={style["new"]}>new</span>;
  const moment = parseMoment(at);
  return <span title={fullMoment(moment)}>{shortMoment(moment, now.value, preferences.value.zone)}</span>;
}

const ORIGINS: Readonly<Record<string, string>> = {
  project_logs: "logs",
  experiment: "experiment",
  dataset: "dataset",
  playground_logs: "playground",
  prompt_session: "playground",
};

function OriginCell({ row, href }: { readonly row: DatasetRow; readonly href: string | null }) {
  if (row.origin === null) return <span className={style["faint"]}>{NOTHING}</span>;
  const words = ORIGINS[row.origin.kind] ?? row.origin.kind;
  if (href === null) return <span title={row.origin.id}>{words}</span>;
  return (
    <a href={href} tabIndex={-1} title={`Open ${row.origin.id}`}>
      {words}
    </a>
  );
}

function Value({ field, value }: { readonly field: Field; readonly value: unknown }) {
  if (value === null || value === undefined) return <span className={style["faint"]}>{NOTHING}</span>;
  const chat = chatOf(value);
  if (chat !== null) {
    return (
      <>
        <span className={style["tag"]}>{chat.count === 1 ? "1 message" : `${chat.count} messages`}</span>
        {lineOf(chat.text)}
      </>
    );
  }
  if (field !== "tags") return lineOf(value);
  return tagsOf(value).map((tag) => (
    <span key={tag} className={style["tag"]}>
      {tag}
    </span>
  ));
}

interface CellProps {
  readonly row: DatasetRow;
  readonly column: Column;
  readonly edit: EditedRow | undefined;
  readonly isCurrent: boolean;
  readonly isStop: boolean;
  readonly context: RowContext;
}

function FieldCell({ row, column, edit, isCurrent, isStop, context }: CellProps) {
  const field = isField(column) ? column : null;
  const value = field === null ? null : valueOf(row, edit, field);
  const misfit = field === null ? null : context.misfit(field, value);
  const isEdited = field !== null && edit !== undefined && edit.base !== null && field in edit.values;
  return (
    <div
      role="gridcell"
      aria-colindex={COLUMNS.indexOf(column) + 2}
      data-column={column}
      tabIndex={isCurrent || isStop ? 0 : -1}
      aria-readonly={field === null || !context.isEditable}
      aria-invalid={misfit !== null}
      title={misfit ?? undefined}
      className={classes(
        style["cell"],
        isCurrent && style["currentCell"],
        isEdited && style["edited"],
        misfit !== null && style["misfit"],
        column === "id" && style["mono"],
      )}
    >
      {column === "id" && row.id}
      {column === "created" && <Created at={row.created} />}
      {column === "origin" && <OriginCell row={row} href={context.originHref(row)} />}
      {field !== null && <Value field={field} value={value} />}
      {isEdited && <span className="only-spoken">, edited</span>}
      {misfit !== null && <span className="only-spoken">, does not fit the schema: {misfit}</span>}
    </div>
  );
}

export const SheetRow = memo(function SheetRow({ row, index, top, isFirstStop, context }: RowProps) {
  const { sheet, editOf, isMoved, wanted } = context;
  const element = useRef<HTMLDivElement>(null);
  const column = useMemo(() => sheet.columnIn(row.id), [sheet, row.id]).value;
  const isSelected = useMemo(() => sheet.selection.has(row.id), [sheet, row.id]).value;
  const edit = useMemo(() => editOf(row.id), [editOf, row.id]).value;
  const hasMoved = useMemo(() => isMoved(row.id), [isMoved, row.id]).value;
  useLayoutEffect(() => {
    if (wanted.current !== true || column === null) return;
    wanted.current = false;
    element.current?.querySelector<HTMLElement>(`[data-column="${column}"]`)?.focus({ preventScroll: true });
  }, [column, wanted]);
  return (
    <div
      ref={element}
      role="row"
      data-row={row.id}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      aria-current={column === null ? undefined : "true"}
      className={classes(
        style["row"],
        isSelected && style["selected"],
        edit?.base === null && style["newRow"],
        hasMoved && style["moved"],
      )}
      style={{ top: `${top}px` }}
    >
      <div role="gridcell" aria-colindex={1} className={style["select"]} title={hasMoved ? "Somebody else changed this row meanwhile." : undefined}>
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Select row ${index + 1}${hasMoved ? ", changed by somebody else meanwhile" : ""}`}
          checked={isSelected}
          onChange={() => sheet.selection.toggle(row.id)}
        />
      </div>
      {COLUMNS.map((one) => (
        <FieldCell
          key={one}
          row={row}
          column={one}
          edit={edit}
          isCurrent={one === column}
          isStop={isFirstStop && one === "input"}
          context={context}
        />
      ))}
    </div>
  );
});

/** The head of the grid. */
export function SheetHead() {
  return (
    <div role="row" aria-rowindex={1} className={classes(style["row"], style["head"])}>
      <div role="columnheader" aria-colindex={1}>
        <span className="only-spoken">Selected</span>
      </div>
      {COLUMNS.map((column, index) => (
        <div key={column} role="columnheader" aria-colindex={index + 2} className={style["cell"]}>
          {TITLES[column]}
        </div>
      ))}
    </div>
  );
}
