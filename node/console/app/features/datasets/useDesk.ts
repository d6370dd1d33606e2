// What the parts of an open dataset share: rows, edits, the cell that is open, and what can be done.
import { computed, signal } from "@preact/signals";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Dataset, DatasetRow } from "../../api/datasets";
import { useCommands, useLatest } from "../../lib/commands";
import { useLinks } from "../../lib/links";
import { navigate } from "../../lib/router";
import { readVersion, sentVersion } from "../../lib/version";
import { isCut } from "./cells";
import { datasetCommands } from "./commands";
import { deleteLater, hiddenRows } from "./deletions";
import { newRow } from "./edits";
import type { DatasetPlace, ListRequest } from "./queries";
import { misfitOf, schemasOf } from "./schemas";
import { createSheet, movedCell } from "./sheet";
import { editStore } from "./store";
import { datasetUrl, type DatasetState } from "./url";
import { useEditing } from "./useEditing";
import { useFocusedCell } from "./useFocusedCell";
import { useRows } from "./useRows";
import { useSaving } from "./useSaving";

/** The dialogs of an open dataset. */
export type Opened = "none" | "delete-rows" | "import" | "details" | "delete" | "snapshot" | "versions" | "restore" | "code" | "uses";

export const FILTER_ID = "dataset-rows-filter";

/** The rows that are shown: new ones first, without those that are about to be deleted. */
function useShown(read: readonly DatasetRow[], added: readonly string[]): readonly DatasetRow[] {
  const hidden = hiddenRows.value;
  return useMemo(() => {
    const there = new Set(read.map((row) => row.id));
    const fresh = added.filter((id) => !there.has(id)).map(newRow);
    return [...fresh, ...read.filter((row) => !hidden.has(row.id))];
  }, [read, added, hidden]);
}

const NO_ADDED: readonly string[] = [];
const NO_ROWS: readonly DatasetRow[] = [];

/** Which edited rows somebody else has changed since they were edited. */
function useMoved(rows: readonly DatasetRow[], store: ReturnType<typeof editStore>) {
  const [transactions] = useState(() => signal<ReadonlyMap<string, string>>(new Map()));
  useEffect(() => {
    transactions.value = new Map(rows.map((row) => [row.id, row.transaction]));
  }, [rows, transactions]);
  return useCallback(
    (id: string) =>
      computed(() => {
        const base = store.history.value.present.rows.get(id)?.base ?? null;
        return base !== null && (transactions.value.get(id) ?? base.transaction) !== base.transaction;
      }),
    [store, transactions],
  );
}

/** The kinds of objects that have a page. */
const LINKED: ReadonlySet<string> = new Set(["project_logs", "experiment", "dataset"]);

/** Where the origin of a row is shown; null if that is not known here. */
function useOriginHref({ organization, project, projectId }: DatasetPlace) {
  const links = useLinks();
  return useCallback(
    ({ origin }: DatasetRow): string | null => {
      if (origin === null || !LINKED.has(origin.kind)) return null;
      const isHere = origin.kind === "project_logs" && origin.objectId === projectId;
      if (isHere) return links.logRow(organization, project, origin.id);
      return links.object(organization, origin.kind, origin.objectId, origin.id);
    },
    [links, organization, project, projectId],
  );
}

function useContext(place: DatasetPlace, dataset: Dataset, rows: readonly DatasetRow[], isEditable: boolean) {
  const [sheet] = useState(createSheet);
  const store = editStore(dataset.id);
  const isMoved = useMoved(rows, store);
  const originHref = useOriginHref(place);
  const schemas = useMemo(() => schemasOf(dataset.metadata), [dataset.metadata]);
  const context = useMemo(
    () => ({
      sheet,
      editOf: store.editOf,
      isMoved,
      originHref,
      isEditable,
      misfit: (field: keyof typeof schemas, value: unknown) =>
        value === null || isCut(value) || schemas[field] === undefined ? null : misfitOf(schemas[field], value),
    }),
    [sheet, store, isMoved, originHref, isEditable, schemas],
  );
  return { sheet, store, schemas, context };
}

/** Changes the state of the address. Opening a version, a comparison or a row pushes an entry of the history. */
export function useChange(state: DatasetState) {
  return useLatest((changed: Partial<DatasetState>): void => {
    const after = { ...state, ...changed };
    const isOpening = after.version !== state.version || after.compare !== state.compare || (state.row === "" && after.row !== "");
    navigate(datasetUrl.write(after), isOpening || after.filter !== state.filter ? "push" : "stay");
  });
}

export function useDesk(state: DatasetState, place: DatasetPlace, dataset: Dataset) {
  const version = sentVersion(readVersion(state.version));
  const request: ListRequest = useMemo(() => ({ filter: state.filter, version }), [state.filter, version]);
  const rows = useRows(place, request);
  const isEditable = state.version === "" && state.compare === "";
  const store = editStore(dataset.id);
  const added = isEditable ? store.history.value.present.added : NO_ADDED;
  const shown = useShown(rows.reading.data ?? NO_ROWS, added);
  const { sheet, schemas, context } = useContext(place, dataset, rows.reading.data ?? NO_ROWS, isEditable);
  const change = useChange(state);
  const [opened, setOpened] = useState<Opened>("none");
  const editing = useEditing({ place, store, sheet, rows: shown, isEditable });
  const onRow = useLatest((id: string) => change({ row: id }));
  const cell = useFocusedCell({ place, sheet, rows: shown, editing, isEditable, onRow });
  const saving = useSaving({ place, store, sheet, onSaved: rows.ask });
  const removeRows = useRemoval(place, shown, sheet, store, rows.ask);
  return { state, place, dataset, request, rows, shown, isEditable, store, sheet, schemas, context, change, opened, setOpened, editing, cell, saving, removeRows };
}

export type Desk = ReturnType<typeof useDesk>;

/** Deletes the selected rows: new ones at once, the others after a while. */
function useRemoval(
  place: DatasetPlace,
  rows: readonly DatasetRow[],
  sheet: ReturnType<typeof createSheet>,
  store: ReturnType<typeof editStore>,
  ask: () => Promise<void>,
) {
  return useLatest(() => {
    const chosen = sheet.selection.ids.peek();
    const ids = rows.map((row) => row.id).filter((id) => chosen.has(id));
    const added = new Set(store.history.peek().present.added);
    store.dispatch({ kind: "drop", ids });
    const kept = ids.filter((id) => !added.has(id));
    sheet.selection.clear();
    if (kept.length > 0) deleteLater(place, kept, () => void ask().catch(() => undefined));
  });
}

/** Lets an open row follow the current cell. */
export function useFollowingRow({ sheet, state, change }: Desk): void {
  const isOpen = state.row !== "";
  const follow = useLatest((id: string) => {
    if (id !== state.row) change({ row: id });
  });
  useEffect(() => {
    if (!isOpen) return undefined;
    let isFirst = true;
    let timer = 0;
    const stop = sheet.cursor.subscribe((cell) => {
      window.clearTimeout(timer);
      if (!isFirst && cell !== null) timer = window.setTimeout(() => follow(cell.row), 120);
      isFirst = false;
    });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [isOpen, sheet, follow]);
}

/** Registers what can be done in an open dataset. */
export function useDeskCommands(desk: Desk): void {
  const latest = useRef(desk);
  latest.current = desk;
  const commands = useMemo(() => {
    const now = (): Desk => latest.current;
    const current = () => now().sheet.cursor.peek();
    return datasetCommands({
      addRow: () => now().editing.addRow(),
      save: () => now().saving.save(),
      fill: () => now().editing.fill(),
      undo: () => now().store.dispatch({ kind: "undo" }),
      redo: () => now().store.dispatch({ kind: "redo" }),
      focusFilter: () => document.getElementById(FILTER_ID)?.focus(),
      importRows: () => now().setOpened("import"),
      move: (by) => now().sheet.actions.focus(movedCell(now().shown.map((row) => row.id), current(), by, 0)),
      select: () => {
        const cell = current();
        if (cell !== null) now().sheet.selection.toggle(cell.row);
      },
      remove: () => now().setOpened("delete-rows"),
      closeRow: () => now().change({ row: "" }),
      hasRow: () => now().state.row !== "",
      hasCell: () => current() !== null,
      hasSelected: () => now().sheet.selection.ids.peek().size > 0,
      isEditable: () => now().isEditable,
    });
  }, []);
  useCommands(commands);
}
