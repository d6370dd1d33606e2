// A row of a grid. It draws itself again when it becomes the current one or is selected, and no other row does.
import { Component, useLayoutEffect, useMemo, useRef, type RefObject } from "react";
import { classes } from "./classes";
import style from "./Grid.module.css";
import type { GridColumn, GridState } from "./GridTypes";

interface GridRowProps<Row> {
  readonly row: Row;
  readonly id: string;
  readonly index: number;
  readonly top: number;
  readonly columns: readonly GridColumn<Row>[];
  readonly state: GridState;
  readonly isSelectable: boolean;
  /** Whether this row is the tab stop while none is current. */
  readonly isFirstStop: boolean;
  /** The row that has to take the focus as soon as it is drawn. */
  readonly wanted: RefObject<string | null>;
}

function Cells<Row>({ row, columns }: Pick<GridRowProps<Row>, "row" | "columns">) {
  return columns.map((column) => (
    <div
      key={column.id}
      role="gridcell"
      data-column={column.id}
      className={classes(style["cell"], column.align === "end" && style["number"])}
    >
      {column.cell(row)}
    </div>
  ));
}

function Shown<Row>(props: GridRowProps<Row>) {
  const { row, id, index, top, columns, state, isSelectable, isFirstStop, wanted } = props;
  const element = useRef<HTMLDivElement>(null);
  const isCurrent = useMemo(() => state.cursor.is(id), [state, id]).value;
  const isSelected = useMemo(() => state.selection.has(id), [state, id]).value;
  useLayoutEffect(() => {
    if (wanted.current !== id || !isCurrent) return;
    wanted.current = null;
    element.current?.focus({ preventScroll: true });
  }, [isCurrent, id, wanted]);
  const cells = useMemo(() => <Cells row={row} columns={columns} />, [row, columns]);
  return (
    <div
      ref={element}
      role="row"
      data-row={id}
      aria-rowindex={index + 2}
      aria-selected={isSelectable ? isSelected : isCurrent}
      aria-current={isCurrent ? "true" : undefined}
      tabIndex={isCurrent || isFirstStop ? 0 : -1}
      className={classes(style["row"], isCurrent && style["current"], isSelected && style["selected"])}
      style={{ top: `${top}px` }}
    >
      {isSelectable && (
        <div role="gridcell" className={style["select"]}>
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Select row ${index + 1}`}
            checked={isSelected}
            onChange={() => state.selection.toggle(id)}
          />
        </div>
      )}
      {cells}
    </div>
  );
}

/** Draws a row again only when something of it has changed. */
export class GridRow<Row> extends Component<GridRowProps<Row>> {
  override shouldComponentUpdate(next: GridRowProps<Row>): boolean {
    const before = this.props;
    return (
      next.row !== before.row ||
      next.id !== before.id ||
      next.top !== before.top ||
      next.columns !== before.columns ||
      next.state !== before.state ||
      next.isFirstStop !== before.isFirstStop ||
      next.isSelectable !== before.isSelectable
    );
  }

  override render() {
    return <Shown {...this.props} />;
  }
}
