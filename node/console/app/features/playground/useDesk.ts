// An open playground: what is edited, what has run, and what is shown of it.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import type { PlaygroundRecord } from "../../api/playground";
import type { KeptRun } from "../../api/playgroundRuns";
import { readingOf } from "../../api/queries";
import { navigate } from "../../lib/router";
import { createCursor } from "../../lib/store";
import { isFaulty } from "./cells";
import { modelsQuery, recordsQuery, rowsQuery, type Place } from "./queries";
import type { CellKey } from "./queue";
import { rowOfInput, type PlayRow } from "./rows";
import { useEditing } from "./useEditing";
import { ofCell, signatureIn, useRuns } from "./useRuns";
import { writePlace, type PlaygroundState } from "./url";
import { titlesOf } from "./variants";

export type Opened =
  | { readonly what: "none" | "prompts" | "rows" | "scorers" | "models" | "experiment" | "rename" | "delete" }
  /** Models for one prompt. */
  | { readonly what: "modelsOf"; readonly prompt: string }
  /** A column that is saved as a version of its prompt, or as an experiment. */
  | { readonly what: "version" | "experimentOf"; readonly variant: string };

const NOTHING: readonly PlayRow[] = [];

/** The rows of the playground, and what is known of them. */
function useRows(place: Place, rows: PlaygroundRecord["playground"]["rows"]) {
  const query = useQuery(rowsQuery(place, rows));
  const typed = useMemo(() => (rows.kind === "input" ? [rowOfInput(rows)] : null), [rows]);
  const all = typed ?? query.data?.rows ?? NOTHING;
  const byId = useMemo(() => new Map(all.map((row) => [row.id, row])), [all]);
  return {
    all,
    byId,
    reading: typed === null ? readingOf(query) : null,
    isAll: typed !== null || query.data?.isAll !== false,
    version: query.data?.version ?? "",
  };
}

interface DeskProps {
  readonly place: Place;
  readonly state: PlaygroundState;
  readonly record: PlaygroundRecord;
  readonly runs: readonly KeptRun[];
  readonly userId: string;
}

export function useDesk({ place, state, record, runs: kept, userId }: DeskProps) {
  const editing = useEditing(place, record);
  const { playground } = editing;
  const rows = useRows(place, playground.rows);
  const visible = useRef<readonly string[]>([]);
  const runs = useRuns({ place, session: record.id, playground, rows: rows.byId }, kept, () => visible.current);
  const [cursor] = useState(() => createCursor(null));
  const [name, setName] = useState(record.name);
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const models = useQuery(modelsQuery(place)).data ?? [];
  const records = useQuery(recordsQuery(place));
  const titles = useMemo(() => titlesOf(playground), [playground]);
  const columns = useMemo(() => new Map(playground.variants.map((one) => [one.id, signatureIn(playground, one)])), [playground]);
  const change = (next: Partial<PlaygroundState>, how: "push" | "replace" = "replace"): void =>
    navigate(writePlace({ ...state, ...next }), how);
  const cellsOf = (variants: readonly string[]): readonly CellKey[] =>
    rows.all.flatMap(({ id: row }) => variants.map((variant) => ({ row, variant })));
  const all = (): readonly CellKey[] => cellsOf(playground.variants.map(({ id }) => id));
  const faulty = (): readonly CellKey[] =>
    all().filter((cell) => {
      const found = runs.store.get(cell);
      return found !== null && isFaulty(found);
    });
  return {
    place,
    state,
    record,
    name,
    setName,
    userId,
    editing,
    playground,
    rows,
    runs,
    visible,
    cursor,
    opened,
    setOpened,
    models,
    records,
    titles,
    change,
    ofCell: (variant: string, row: PlayRow) => ofCell(columns.get(variant) ?? "", row),
    cellsOf,
    all,
    /** The cells that have not run to an end, or that ran something else than they would now. */
    rest: () =>
      all().filter((cell) => {
        const [found, row] = [runs.store.get(cell), rows.byId.get(cell.row)];
        const isCurrent = row !== undefined && found?.of === ofCell(columns.get(cell.variant) ?? "", row);
        return !(isCurrent && (found?.state === "done" || found?.state === "failed"));
      }),
    runAll: () => runs.start(all()),
    retryFailed: () => runs.retry(faulty()),
    stop: () => runs.stop(),
  };
}

export type Desk = ReturnType<typeof useDesk>;
