// The list itself, in each of its states.
import { useCallback, useEffect, useMemo } from "react";
import { askToSignIn } from "../../../api/gate";
import type { LogRow } from "../../../api/rows";
import { Button } from "../../../design/Button";
import { Grid } from "../../../design/Grid";
import type { GridState } from "../../../design/GridTypes";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { nextSort, placed } from "../columns";
import { keyOf } from "../tail";
import type { LogsState } from "../url";
import type { Rows } from "../useRows";
import { gridColumns } from "./cells";
import { NoRows } from "./later";
import type { NoRowsProps } from "./NoRows";
import style from "./Rows.module.css";

const BARS = [12, 10, 40, 40, 16, 6, 6, 6];
const LINES = Array.from({ length: 12 }, () => BARS);

interface RowsListProps extends Omit<NoRowsProps, "state"> {
  readonly state: LogsState;
  readonly grid: GridState;
  readonly rows: Rows;
  readonly onOpenRow: (row: LogRow) => void;
}

/** The button that shows the rows that wait. Whoever scrolls to the top sees them as well. */
function Waiting({ grid, rows }: Pick<RowsListProps, "grid" | "rows">) {
  const { waiting, release } = rows;
  const isAtTop = grid.isAtTop.value;
  useEffect(() => {
    if (isAtTop && waiting > 0) release();
  }, [isAtTop, waiting, release]);
  if (waiting === 0) return null;
  return (
    <div className={style["waiting"]}>
      <Button
        look="primary"
        icon="up"
        onClick={() => {
          release();
          grid.actions.scrollToTop();
        }}
      >
        {waiting} new
      </Button>
    </div>
  );
}

export function RowsList(props: RowsListProps) {
  const { state, grid, rows, onOpenRow, change, addFilter } = props;
  const columns = useMemo(() => gridColumns(state.columns, state.sort), [state.columns, state.sort]);
  const rowId = useCallback((row: LogRow) => keyOf(row, state.shape), [state.shape]);
  return (
    <>
      <Waiting grid={grid} rows={rows} />
      <div className={style["list"]} data-old={(rows.isOld && rows.reading.data !== undefined) || undefined}>
        <Loaded
          reading={rows.reading}
          skeleton={<Skeleton lines={LINES} />}
          onSignIn={() => void askToSignIn().then(() => rows.reading.again())}
        >
          {(found) =>
            found.length === 0 ? (
              <NoRows {...props} />
            ) : (
              <Grid
                label={state.shape === "traces" ? "Traces" : "Spans"}
                state={grid}
                rows={found}
                rowId={rowId}
                columns={columns}
                total={rows.hasMore ? undefined : found.length}
                isReadingMore={rows.isReadingMore}
                onOpen={onOpenRow}
                onSort={(id) => change({ sort: nextSort(state.sort, id) })}
                onColumns={(places) => change({ columns: placed(state.columns, places) })}
                onEnd={rows.more}
                onCell={(row, column, isExcluded) =>
                  void import("../filtering").then(({ cellExpression }) => {
                    const expression = cellExpression(row, column, state.columns, isExcluded);
                    if (expression !== null) addFilter(expression);
                  })
                }
              />
            )
          }
        </Loaded>
      </div>
    </>
  );
}
