// What can be done with the selected rows, with the current one, or with all that the filter finds.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { LogRow } from "../../../api/rows";
import type { GridState } from "../../../design/GridTypes";
import { actingOnRows, type Acting } from "../acting";
import type { Place } from "../bulk";
import { actingOnAll } from "../jobs";
import { countQuery } from "../laterQueries";
import type { LogsRequest } from "../request";
import { keyOf } from "../tail";
import type { LogShape } from "../url";
import { BulkBar } from "./BulkBar";
import { countWords, type BulkAction, type Chosen } from "./chosen";
import { BulkDialog } from "./later";

export interface BulkProps {
  readonly place: Place;
  readonly grid: GridState;
  readonly rows: readonly LogRow[];
  /** Whether the filter finds more rows than are loaded. */
  readonly hasMore: boolean;
  readonly request: LogsRequest;
  readonly action: BulkAction;
  readonly onAction: (action: BulkAction) => void;
}

/** The loaded rows among some keys. */
function chosenRows(rows: readonly LogRow[], keys: readonly string[], shape: LogShape): Chosen {
  const wanted = new Set(keys);
  const chosen = rows.filter((row) => wanted.has(keyOf(row, shape)));
  return { rows: chosen, keys: chosen.map((row) => keyOf(row, shape)), shape };
}

/** How many rows the filter finds, if all that are loaded are selected and there are more; null otherwise. */
function useMatching({ place, request, rows, hasMore }: BulkProps, chosen: Chosen): number | null {
  const isWanted = hasMore && chosen.keys.length === rows.length;
  const count = useQuery({ ...countQuery(place.organization, request), enabled: isWanted }).data;
  return isWanted && count !== undefined && count > rows.length ? count : null;
}

export function Bulk(props: BulkProps) {
  const { place, grid, rows, request, action, onAction } = props;
  const selected = grid.selection.ids.value;
  const current = grid.cursor.at.peek();
  const keys = selected.size > 0 ? [...selected] : current === null ? [] : [current];
  const chosen = chosenRows(rows, keys, request.shape);
  const matching = useMatching(props, chosen);
  // The selection for which all was chosen: another selection is about its own rows again.
  const [all, setAll] = useState<{ readonly of: ReadonlySet<string>; readonly count: number } | null>(null);
  const isAll = all !== null && all.of === selected;
  const words = countWords(isAll ? all.count : chosen.keys.length, request.shape);
  const acting = (): Acting =>
    isAll ? actingOnAll(place, request, all.count, words) : actingOnRows(place, chosen, words);
  return (
    <>
      {selected.size > 0 && (
        <BulkBar
          words={words}
          isPast={request.version !== ""}
          matching={isAll ? null : matching}
          onMatching={(count) => setAll({ of: selected, count })}
          onAction={onAction}
          onClear={() => grid.selection.clear()}
        />
      )}
      {action !== "none" && request.version === "" && chosen.keys.length > 0 && (
        <BulkDialog
          key={action}
          action={action}
          acting={acting()}
          onClose={() => onAction("none")}
          onDone={() => grid.selection.clear()}
        />
      )}
    </>
  );
}
