// The result as a table.
import { useMemo, useState } from "react";
import type { Fields } from "../../../api/narrow";
import { Grid } from "../../../design/Grid";
import { createGridState, type GridColumn, type GridColumnPlace } from "../../../design/GridTypes";
import { preferences } from "../../../lib/preferences";
import { fullMoment, parseMoment } from "../../../lib/time";
import { cellText, kindOf, previewText, shownOrder, widthOf, type ColumnKind } from "../cells";
import { hasStar } from "../lexer";
import type { Ran } from "../runner";
import { RowDialog } from "./RowDialog";
import style from "./Result.module.css";

interface Row {
  readonly index: number;
  readonly fields: Fields;
}

const rowId = ({ index }: Row): string => String(index);

function Cell({ value, kind }: { readonly value: unknown; readonly kind: ColumnKind }) {
  const moment = kind === "moment" && typeof value === "string" ? fullMoment(parseMoment(value)) : undefined;
  const title = typeof value === "number" ? String(value) : moment;
  const isAbsent = value === null || value === undefined;
  return (
    <span className={isAbsent ? style["absent"] : kind === "other" ? style["code"] : undefined} title={title}>
      {cellText(value, kind, preferences.value.zone)}
    </span>
  );
}

function previewOf(value: unknown) {
  const text = previewText(value);
  return text === null ? null : <pre className={style["preview"]}>{text}</pre>;
}

/** The columns in the order and the widths that a person gave them, as long as the result has the same columns. */
function useColumns(ran: Ran, query: string): readonly [readonly GridColumn<Row>[], (places: readonly GridColumnPlace[]) => void] {
  const { rows, result } = ran;
  const key = result.columns.join("\n");
  const names = useMemo(() => shownOrder(result.columns, rows, hasStar(query)), [key, ran.result]);
  const [placed, setPlaced] = useState<{ readonly key: string; readonly places: readonly GridColumnPlace[] } | null>(null);
  const places = placed?.key === key ? placed.places : null;
  const columns = useMemo(() => {
    const sample = rows.slice(0, 200);
    const all = names.map((name): GridColumn<Row> => {
      const kind = kindOf(name, result.schema[name], sample);
      return {
        id: name,
        title: name,
        width: widthOf(name, kind, sample),
        ...(kind === "number" ? { align: "end" } : {}),
        cell: (row) => <Cell value={row.fields[name]} kind={kind} />,
        preview: (row) => previewOf(row.fields[name]),
      };
    });
    if (places === null) return all;
    return places.flatMap(({ id, width }) => all.filter((column) => column.id === id).map((column) => ({ ...column, width })));
  }, [names, ran.result, places]);
  return [columns, (next) => setPlaced({ key, places: next })];
}

interface ResultTableProps {
  readonly ran: Ran;
  /** The text whose result it is. */
  readonly query: string;
}

export function ResultTable({ ran, query }: ResultTableProps) {
  const state = useMemo(() => createGridState(), [ran.result]);
  const [open, setOpen] = useState<Row | null>(null);
  const rows = useMemo(() => ran.rows.map((fields, index) => ({ index, fields })), [ran.rows]);
  const [columns, setPlaces] = useColumns(ran, query);
  const step = (by: number): void => setOpen((row) => rows[(row?.index ?? 0) + by] ?? row);
  return (
    <>
      <Grid
        label="Result"
        state={state}
        rows={rows}
        rowId={rowId}
        columns={columns}
        total={ran.result.cursor === null ? rows.length : undefined}
        isSelectable={false}
        onOpen={setOpen}
        onColumns={setPlaces}
      />
      {open !== null && (
        <RowDialog
          index={open.index}
          count={rows.length}
          names={columns.map(({ id }) => id)}
          fields={open.fields}
          onStep={step}
          onClose={() => setOpen(null)}
        />
      )}
    </>
  );
}
