// The pairs as a table: one line each, with the trials of those that are unfolded.
import { useMemo } from "react";
import type { Compared, Pair } from "../../../api/comparison";
import { Grid } from "../../../design/Grid";
import type { GridState } from "../../../design/GridTypes";
import { pairIdOf, tableRows, type TableRow } from "../rows";
import { tableColumns } from "./columns";

interface TableProps {
  readonly compared: Compared;
  readonly pairs: readonly Pair[];
  readonly grid: GridState;
  readonly score: string;
  readonly isDiff: boolean;
  readonly unfolded: ReadonlySet<string>;
  readonly isReadingMore: boolean;
  readonly onEnd: () => void;
  readonly onOpen: (row: TableRow) => void;
}

const idOf = ({ id }: TableRow): string => id;

export function TableView(props: TableProps) {
  const { compared, pairs, grid, score, isDiff, unfolded, isReadingMore, onEnd, onOpen } = props;
  const rows = useMemo(() => tableRows(pairs, unfolded), [pairs, unfolded]);
  const columns = useMemo(
    () => tableColumns({ compared, score, isDiff, isUnfolded: ({ pair }) => unfolded.has(pairIdOf(pair)) }),
    [compared, score, isDiff, unfolded],
  );
  return (
    <Grid
      label="Compared rows"
      state={grid}
      rows={rows}
      rowId={idOf}
      columns={columns}
      total={compared.total + (rows.length - pairs.length)}
      isSelectable={false}
      isReadingMore={isReadingMore}
      onEnd={onEnd}
      onOpen={onOpen}
    />
  );
}
