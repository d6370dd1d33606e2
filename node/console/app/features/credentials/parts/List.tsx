// A list of credentials: filtered by name, with the actions of each in a menu.
import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect, useMemo, useState, type ReactNode } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { createGridState, gridCommands, type GridColumn } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Loaded } from "../../../design/Loaded";
import { Marked } from "../../../design/Marked";
import { Menu, type MenuItem } from "../../../design/Menu";
import { SectionGrid } from "../../../design/SectionGrid";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands } from "../../../lib/commands";
import { preferences } from "../../../lib/preferences";
import { navigate } from "../../../lib/router";
import { announce } from "../../../lib/store";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { credentialsAddress, type CredentialsState } from "../url";
import style from "./List.module.css";

const LINES = Array.from({ length: 4 }, () => [24, 12, 20, 10]);
const FILTER_ID = "credentials-filter";

/** Shorter lists need no filter. */
const UNFILTERED_MAX = 8;

/** Where a window is this narrow, the actions stand beside the name, in sight. */
const NARROW = "(max-width: 40rem)";

/** The width of a name there, which leaves room for another column. */
const NARROW_NAME = 120;

interface Listed {
  readonly id: string;
  readonly name: string;
}

const idOf = ({ id }: Listed): string => id;
const actionsId = (id: string): string => `credential-${id}`;

/** A moment in a cell. It alone follows the clock. */
export function When({ at }: { readonly at: string | null }) {
  const moment = parseMoment(at);
  return <span title={fullMoment(moment)}>{shortMoment(moment, now.value, preferences.value.zone)}</span>;
}

/** A text of somebody else in a cell, whole in its tooltip. */
export function Text({ text, isFaint = false }: { readonly text: string; readonly isFaint?: boolean }) {
  return (
    <span title={text} className={isFaint ? style["faint"] : undefined}>
      <Marked text={text} />
    </span>
  );
}

function actionsColumn<Row extends Listed>(actionsOf: (row: Row) => readonly MenuItem[]): GridColumn<Row> {
  return {
    id: "actions",
    title: "Actions",
    width: 72,
    align: "end",
    cell: (row) => (
      <div className={style["actions"]}>
        <Menu
          label={`Actions of ${row.name}`}
          buttonId={actionsId(row.id)}
          tabIndex={-1}
          isAlone
          button={<Icon name="more" />}
          items={actionsOf(row)}
        />
      </div>
    ),
  };
}

interface ListProps<Row extends Listed> {
  readonly label: string;
  /** What one of them is called, such as "key". */
  readonly noun: string;
  readonly state: CredentialsState;
  readonly query: UseQueryResult<readonly Row[]>;
  /** The columns before the actions. Keep the list while it stays the same. */
  readonly columns: readonly GridColumn<Row>[];
  readonly actionsOf: (row: Row) => readonly MenuItem[];
  /** Opens a row: a click, or `enter`; absent if its actions are all. */
  readonly onOpen?: (row: Row) => void;
  readonly empty: ReactNode;
}

/** The words of a row that the filter looks at. */
const wordsOf = (row: Listed): string => Object.values(row).filter((value) => typeof value === "string").join("\n").toLowerCase();

function useListCommands(grid: ReturnType<typeof createGridState>, label: string, noun: string): void {
  const commands = useMemo(() => {
    const actions = (): HTMLElement | null => document.getElementById(actionsId(grid.cursor.at.peek() ?? ""));
    return [
      ...gridCommands(grid, label, noun).filter(({ keys }) => keys !== "x"),
      { id: `${label}.actions`, title: `Actions of the ${noun}`, group: label, keys: ".", when: () => actions() !== null, run: () => actions()?.click() },
      { id: `${label}.filter`, title: `Filter by name`, group: label, keys: "/", when: () => document.getElementById(FILTER_ID) !== null, run: () => document.getElementById(FILTER_ID)?.focus() },
    ];
  }, [grid, label, noun]);
  useCommands(commands);
}

/** Whether the window is narrow now. */
function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => window.matchMedia(NARROW).matches);
  useEffect(() => {
    const media = window.matchMedia(NARROW);
    const follow = (): void => setNarrow(media.matches);
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  return isNarrow;
}

function useWithActions<Row extends Listed>(columns: ListProps<Row>["columns"], actionsOf: ListProps<Row>["actionsOf"]) {
  const isNarrow = useNarrow();
  return useMemo(() => {
    const actions = actionsColumn(actionsOf);
    const [name, ...others] = columns;
    if (name === undefined || !isNarrow) return [...columns, actions];
    return [{ ...name, width: NARROW_NAME }, actions, ...others];
  }, [columns, actionsOf, isNarrow]);
}

export function List<Row extends Listed>({ label, noun, state, query, columns, actionsOf, onOpen, empty }: ListProps<Row>) {
  const [grid] = useState(() => createGridState());
  useListCommands(grid, label, noun);
  const all = query.data ?? [];
  const words = state.filter.trim().toLowerCase();
  const shown = useMemo(() => (words === "" ? all : all.filter((row) => wordsOf(row).includes(words))), [all, words]);
  const withActions = useWithActions(columns, actionsOf);
  const filter = (text: string): void => navigate(credentialsAddress({ ...state, filter: text }), "replace");
  useEffect(() => {
    if (words !== "") announce(`${shown.length} of ${all.length}`);
  }, [words, shown.length, all.length]);
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<Skeleton lines={LINES} />}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {() => (
        <>
          {(all.length > UNFILTERED_MAX || words !== "") && (
            <input
              id={FILTER_ID}
              type="search"
              className={style["filter"]}
              aria-label="Filter by name"
              placeholder="Filter by name"
              autoComplete="off"
              value={state.filter}
              onChange={(event) => filter(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Escape") event.currentTarget.blur();
              }}
            />
          )}
          {all.length === 0 && empty}
          {all.length > 0 && shown.length === 0 && (
            <Empty action={<Button onClick={() => filter("")}>Show all {all.length}</Button>}>
              Nothing here has “{state.filter}” in its name.
            </Empty>
          )}
          {shown.length > 0 && (
            <SectionGrid
              label={label}
              state={grid}
              rows={shown}
              rowId={idOf}
              columns={withActions}
              total={shown.length}
              onOpen={(row) => onOpen?.(row)}
            />
          )}
        </>
      )}
    </Loaded>
  );
}
