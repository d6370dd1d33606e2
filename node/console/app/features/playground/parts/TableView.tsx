// The table: a row for each input, a cell for each column. It draws the rows that are in view.
import { memo } from "react";
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { useLatest } from "../../../lib/commands";
import { exactCount } from "../../../lib/numbers";
import { linesOf, type PlayRow } from "../rows";
import type { Desk } from "../useDesk";
import { CellView } from "./CellView";
import { Column } from "./Column";
import style from "./TableView.module.css";
import type { Table } from "./useTable";

interface RowHeadProps {
  readonly row: PlayRow;
  readonly index: number;
  readonly onEdit: (() => void) | null;
}

const RowHead = memo(function RowHead({ row, index, onEdit }: RowHeadProps) {
  const [input, expected] = [linesOf(row.input), linesOf(row.expected)];
  return (
    <div role="rowheader" aria-colindex={1} className={style["rowHead"]}>
      {onEdit === null ? (
        <span className={style["number"]}>{exactCount(index + 1)}</span>
      ) : (
        <Button look="quiet" onClick={onEdit}>
          Edit the input
        </Button>
      )}
      <p className={style["input"]}>{input === "" ? <span className={style["faint"]}>No input</span> : input}</p>
      {expected !== "" && (
        <p className={style["expected"]}>
          <span className={style["faint"]}>expected</span> {expected}
        </p>
      )}
    </div>
  );
});

interface RowProps {
  readonly desk: Desk;
  readonly table: Table;
  readonly row: PlayRow;
  readonly index: number;
  readonly columns: { readonly gridTemplateColumns: string };
  readonly onEdit: (() => void) | null;
}

function Row({ desk, table, row, index, columns, onEdit }: RowProps) {
  const { playground, runs, state, cursor, rows } = desk;
  const [first] = playground.variants;
  const current = cursor.at.value;
  const isTop = index === 0 && !rows.all.some(({ id }) => playground.variants.some((one) => table.idOf({ row: id, variant: one.id }) === current));
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={style["row"]}
      style={{ ...columns, top: `${index * table.height}px`, height: `${table.height}px` }}
    >
      <RowHead row={row} index={index} onEdit={onEdit} />
      {playground.variants.map((variant, at) => {
        const cell = { row: row.id, variant: variant.id };
        const isCurrent = table.idOf(cell) === current;
        const isOpen = state.variant === variant.id && state.row === row.id;
        return (
          <div
            key={variant.id}
            role="gridcell"
            aria-colindex={at + 2}
            aria-selected={isOpen}
            tabIndex={isCurrent || (isTop && at === 0) ? 0 : -1}
            data-current={isCurrent || undefined}
            className={classes(style["cell"], isOpen && style["open"])}
            onFocus={() => cursor.set(table.idOf(cell))}
            onClick={() => desk.change(cell)}
          >
            <CellView
              {...{ runs }}
              row={row.id}
              variant={variant.id}
              base={state.isDiff && at > 0 ? (first?.id ?? "") : ""}
              of={desk.ofCell(variant.id, row)}
              organization={desk.place.organization}
            />
          </div>
        );
      })}
    </div>
  );
}

export function TableView({ desk, table }: { readonly desk: Desk; readonly table: Table }) {
  const { playground, rows } = desk;
  const { variants } = playground;
  const { scroller, head, shown, measure, height, onKeyDown } = table;
  const edit = useLatest(() => desk.setOpened({ what: "rows" }));
  const columns = { gridTemplateColumns: `var(--first) repeat(${variants.length}, minmax(16rem, 1fr))` };
  const isTyped = playground.rows.kind === "input";
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label="Cells"
      aria-rowcount={rows.all.length + 1}
      aria-colcount={variants.length + 1}
      className={style["table"]}
      onScroll={measure}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup" ref={head} className={style["heads"]}>
        <div role="row" aria-rowindex={1} className={style["headRow"]} style={columns}>
          <div role="columnheader" aria-colindex={1} className={style["corner"]}>
            Input
          </div>
          {variants.map((variant, index) => (
            <Column key={variant.id} {...{ desk, variant, index }} />
          ))}
        </div>
      </div>
      <div role="rowgroup" className={style["rows"]} style={{ height: `${rows.all.length * height}px` }}>
        {rows.all.slice(shown.first, shown.end).map((row, offset) => (
          <Row key={row.id} {...{ desk, table, row, columns }} index={shown.first + offset} onEdit={isTyped ? edit : null} />
        ))}
      </div>
    </div>
  );
}
