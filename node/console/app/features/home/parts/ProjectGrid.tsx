// The list of projects: one tab stop, moved through by arrows, with the actions of each project in a menu.
import { memo, useEffect, useMemo, type KeyboardEvent } from "react";
import type { Project } from "../../../api/schema";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { duration, exactCount, money, NOTHING, shortCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { moved, type Cursor } from "../../../lib/store";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import type { Day } from "../days";
import type { Sort } from "../url";
import { Hours } from "./Hours";
import style from "./ProjectGrid.module.css";

export interface ProjectActions {
  /** The address of a project's logs. */
  logs(name: string): string;
  open(name: string): void;
  showSnippets(name: string): void;
  copy(text: string, what: string): void;
  pin(id: string): void;
}

const COLUMNS: readonly { readonly sort: Sort; readonly title: string; readonly direction: "ascending" | "descending" }[] = [
  { sort: "name", title: "Project", direction: "ascending" },
  { sort: "newest", title: "Newest trace", direction: "descending" },
  { sort: "rows", title: "Rows, 24 h", direction: "descending" },
  { sort: "errors", title: "Errors, 24 h", direction: "descending" },
];

const rowId = (project: string): string => `project-${project}`;
export const actionsId = (project: string): string => `actions-${project}`;

/** How long ago the newest trace came. It alone follows the clock. */
function Newest({ at }: { readonly at: string | null }) {
  const moment = parseMoment(at);
  return <span title={fullMoment(moment)}>{shortMoment(moment, now.value, preferences.value.zone)}</span>;
}

interface RowProps {
  readonly project: Project;
  /** Its last 24 hours, once they are known. */
  readonly day: Day | undefined;
  readonly isReading: boolean;
  readonly isFailed: boolean;
  readonly isPinned: boolean;
  readonly index: number;
  readonly cursor: Cursor;
  readonly isFirstStop: boolean;
  readonly actions: ProjectActions;
}

const Row = memo(function Row({ project, day, isReading, isFailed, isPinned, index, cursor, isFirstStop, actions }: RowProps) {
  const isCurrent = useMemo(() => cursor.is(project.name), [cursor, project.name]).value;
  const isMissing = (isReading || isFailed) && project.rows > 0;
  const missing = isFailed ? <span title="Could not be read">?</span> : <span className={style["unread"]} />;
  const unknown = isMissing ? missing : NOTHING;
  return (
    <div
      id={rowId(project.name)}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isCurrent}
      tabIndex={isCurrent || isFirstStop ? 0 : -1}
      className={classes(style["row"], isCurrent && style["current"])}
      onFocus={() => cursor.set(project.name)}
      onClick={(event) => {
        if (!(event.target instanceof Element) || event.target.closest("a, button, [popover]") === null) {
          actions.open(project.name);
        }
      }}
    >
      <div role="gridcell" className={style["name"]} title={project.name}>
        <a href={actions.logs(project.name)} tabIndex={-1}>
          {project.name}
        </a>
        {isPinned && (
          <span className={style["pin"]}>
            <Icon name="bookmark" />
            <span className="only-spoken">pinned</span>
          </span>
        )}
      </div>
      <div role="gridcell" className={style["day"]}>
        {day === undefined ? unknown : <Hours day={day} />}
      </div>
      <div role="gridcell" className={style["number"]}>
        <Newest at={project.newest} />
      </div>
      <div role="gridcell" className={style["number"]} data-label="rows">
        <span title={exactCount(project.rows)}>{shortCount(project.rows)}</span>
      </div>
      <div role="gridcell" className={style["number"]} data-label="errors">
        <span title={exactCount(project.errors)} className={project.errors > 0 ? style["bad"] : undefined}>
          {shortCount(project.errors)}
        </span>
      </div>
      <div role="gridcell" className={style["number"]} data-label="p95">
        {project.rows === 0 || day === undefined ? unknown : duration(day.p95)}
      </div>
      <div role="gridcell" className={style["number"]} data-label="cost">
        {project.rows === 0 || day === undefined ? unknown : money(day.cost)}
      </div>
      <div role="gridcell" className={style["actions"]}>
        <Menu
          label={`Actions of ${project.name}`}
          buttonId={actionsId(project.name)}
          tabIndex={-1}
          isAlone
          button={<Icon name="more" />}
          items={[
            { id: "logs", title: "Open the logs", run: () => actions.open(project.name) },
            { id: "pin", title: isPinned ? "Unpin" : "Pin to the top", run: () => actions.pin(project.id) },
            { id: "send", title: "Show how to send traces", run: () => actions.showSnippets(project.name) },
            { id: "name", title: "Copy the name", run: () => actions.copy(project.name, "name") },
            { id: "id", title: "Copy the id", run: () => actions.copy(project.id, "id") },
          ]}
        />
      </div>
    </div>
  );
});

interface ProjectGridProps {
  readonly projects: readonly Project[];
  readonly days: ReadonlyMap<string, Day> | undefined;
  /** Whether the days are still being read. */
  readonly isReading: boolean;
  /** Whether they could not be read. */
  readonly isFailed: boolean;
  readonly pinned: ReadonlySet<string>;
  readonly sort: Sort;
  readonly cursor: Cursor;
  readonly actions: ProjectActions;
  readonly onSort: (sort: Sort) => void;
}

export function focusProject(name: string | null): void {
  if (name !== null) document.getElementById(rowId(name))?.focus();
}

function scrollToProject(name: string | null): void {
  if (name !== null) document.getElementById(rowId(name))?.scrollIntoView({ block: "nearest" });
}

/** Moves by arrows and to the ends, and opens the current project. */
function followKey(
  event: KeyboardEvent<HTMLElement>,
  names: readonly string[],
  current: string | null,
  open: (name: string) => void,
): void {
  if (!(event.target instanceof HTMLElement) || event.target.role !== "row") return;
  const by: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: 10,
    PageUp: -10,
    Home: -names.length,
    End: names.length,
  };
  if (event.key === "Enter" && current !== null) {
    event.preventDefault();
    open(current);
  }
  const distance = by[event.key];
  if (distance === undefined) return;
  event.preventDefault();
  focusProject(moved(names, current, distance));
}

function Head({ sort, onSort }: Pick<ProjectGridProps, "sort" | "onSort">) {
  const plain = (title: string) => (
    <div role="columnheader" className={style["plain"]}>
      {title}
    </div>
  );
  const sorting = COLUMNS.map((column) => (
    <div
      key={column.sort}
      role="columnheader"
      aria-sort={column.sort === sort ? column.direction : "none"}
      className={column.sort === "name" ? undefined : style["number"]}
    >
      <button type="button" className={style["sort"]} onClick={() => onSort(column.sort)}>
        {column.title}
        {column.sort === sort && <Icon name={column.direction === "ascending" ? "up" : "down"} />}
      </button>
    </div>
  ));
  return (
    <div role="row" aria-rowindex={1} className={style["head"]}>
      {sorting[0]}
      {plain("Traces, 24 h")}
      {sorting.slice(1)}
      {plain("p95")}
      {plain("Cost")}
      <div role="columnheader">
        <span className="only-spoken">Actions</span>
      </div>
    </div>
  );
}

export function ProjectGrid({ projects, days, isReading, isFailed, pinned, sort, cursor, actions, onSort }: ProjectGridProps) {
  const names = projects.map((project) => project.name);
  useEffect(() => scrollToProject(cursor.at.peek()), [cursor]);
  const hasCurrent = names.some((name) => name === cursor.at.peek());
  return (
    <div
      role="grid"
      aria-label="Projects"
      aria-rowcount={projects.length + 1}
      className={style["grid"]}
      onKeyDown={(event) => followKey(event, names, cursor.at.peek(), actions.open)}
    >
      <Head sort={sort} onSort={onSort} />
      {projects.map((project, index) => (
        <Row
          key={project.id}
          project={project}
          day={days?.get(project.id)}
          isReading={isReading}
          isFailed={isFailed}
          isPinned={pinned.has(project.id)}
          index={index}
          cursor={cursor}
          isFirstStop={index === 0 && !hasCurrent}
          actions={actions}
        />
      ))}
    </div>
  );
}
