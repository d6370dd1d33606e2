// An organization's home: its projects, the newest first.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { askToSignIn } from "../../api/gate";
import { projectsQuery, readingOf, sessionQuery } from "../../api/queries";
import type { Project, Projects } from "../../api/schema";
import { Button, ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Icon } from "../../design/Icon";
import { lazily } from "../../design/Lazily";
import { Loaded } from "../../design/Loaded";
import { Skeleton } from "../../design/Skeleton";
import { toast } from "../../design/Toast";
import { copyText } from "../../lib/clipboard";
import { useCommands, useLatest } from "../../lib/commands";
import { problemOf } from "../../lib/errors";
import { useLinks } from "../../lib/links";
import { navigate } from "../../lib/router";
import { createCursor, moved, type Cursor } from "../../lib/store";
import { homeCommands } from "./commands";
import { daysQuery } from "./days";
import { listed } from "./listing";
import { NewProject } from "./parts/NewProject";
import { actionsId, focusProject, ProjectGrid, type ProjectActions } from "./parts/ProjectGrid";
import style from "./screen.module.css";
import { homeUrl, type HomeState } from "./url";
import { pinnedOf, togglePin } from "./visits";

const FailureLine = lazily(async () => (await import("../../design/FailureLine")).FailureLine);
const News = lazily(async () => (await import("./parts/News")).News);
const FILTER_ID = "project-filter";
const BARS = [24, 14, 6, 6];

/** The cursor of the list, kept in the address a moment after it came to rest. */
function useRowInAddress(state: HomeState): Cursor {
  const cursor = useMemo(() => createCursor(state.row === "" ? null : state.row), [state.organization]);
  useEffect(() => {
    if (state.row !== "" && state.row !== cursor.at.peek()) cursor.set(state.row);
  }, [cursor, state.row]);
  const write = useLatest((row: string) => navigate(homeUrl.write({ ...state, row }), "stay"));
  useEffect(() => {
    let timer = 0;
    const stop = cursor.at.subscribe((row) => {
      window.clearTimeout(timer);
      if (row !== null) timer = window.setTimeout(() => write(row), 200);
    });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [cursor, write]);
  return cursor;
}

function useProjectActions(organization: string, pin: (id: string) => void): ProjectActions {
  const links = useLinks();
  return useMemo(
    () => ({
      logs: (name) => links.logs(organization, name),
      open: (name) => navigate(links.logs(organization, name), "push"),
      showSnippets: (name) => navigate(links.welcome(organization, name), "push"),
      pin,
      copy: async (text, what) => {
        const isDone = await copyText(text);
        toast(isDone ? `The ${what} is copied.` : "The browser refused to copy.", !isDone);
      },
    }),
    [links, organization, pin],
  );
}

function useHomeCommands(projects: readonly Project[], cursor: Cursor, newProject: () => void): void {
  const move = useLatest((by: number) => {
    focusProject(moved(projects.map((project) => project.name), cursor.at.peek(), by));
  });
  const commands = useMemo(
    () =>
      homeCommands({
        newProject,
        move,
        focusFilter: () => document.getElementById(FILTER_ID)?.focus(),
        openActions: () => document.getElementById(actionsId(cursor.at.peek() ?? ""))?.click(),
        hasRow: () => document.getElementById(actionsId(cursor.at.peek() ?? "")) !== null,
      }),
    [newProject, move, cursor],
  );
  useCommands(commands);
}

interface FilterProps {
  readonly state: HomeState;
  readonly cursor: Cursor;
  readonly onNew: () => void;
}

function Head({ state, cursor, onNew }: FilterProps) {
  const filter = (text: string): void =>
    navigate(homeUrl.write({ ...state, filter: text, row: cursor.at.peek() ?? "" }), "replace");
  return (
    <header className={style["head"]}>
      <h1 tabIndex={-1}>Projects</h1>
      <label className={style["filter"]}>
        <Icon name="search" />
        <span className="only-spoken">Filter the projects by name</span>
        <input
          id={FILTER_ID}
          type="search"
          placeholder="Filter by name"
          autoComplete="off"
          value={state.filter}
          onChange={(event) => filter(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
      </label>
      <Button icon="plus" onClick={onNew}>
        New project
      </Button>
    </header>
  );
}

interface ListProps {
  readonly state: HomeState;
  readonly found: Projects;
  readonly cursor: Cursor;
  readonly pinned: ReadonlySet<string>;
  readonly onPin: (id: string) => void;
  readonly onNew: () => void;
}

function List({ state, found, cursor, pinned, onPin, onNew }: ListProps) {
  const links = useLinks();
  const actions = useProjectActions(state.organization, onPin);
  const { data: days, error, isFetching, refetch } = useQuery(daysQuery(state.organization, found.projects));
  const isFailed = days === undefined && error !== null && !isFetching;
  const shown = listed(found.projects, state.filter, state.sort, pinned);
  const withRow = (changed: Partial<HomeState>): void =>
    navigate(homeUrl.write({ ...state, row: cursor.at.peek() ?? "", ...changed }), "replace");
  if (found.projects.length === 0) {
    const way = (
      <>
        <ButtonLink look="primary" href={links.welcome(state.organization)}>
          Send the first trace
        </ButtonLink>
        <Button onClick={onNew}>New project</Button>
      </>
    );
    return <Empty action={way}>This organization has no project yet. The first trace makes one.</Empty>;
  }
  if (shown.length === 0) {
    return (
      <Empty action={<Button onClick={() => withRow({ filter: "" })}>Show all {found.projects.length}</Button>}>
        No project has a name with “{state.filter}”.
      </Empty>
    );
  }
  return (
    <>
      {isFailed && (
        <FailureLine
          words="Traces, p95 and cost could not be read"
          problem={problemOf(error, Date.now())}
          onRetry={() => void refetch()}
        />
      )}
      <ProjectGrid
        projects={shown}
        days={days}
        isReading={days === undefined && isFetching}
        isFailed={isFailed}
        pinned={pinned}
        sort={state.sort}
        cursor={cursor}
        actions={actions}
        onSort={(sort) => withRow({ sort })}
      />
      {found.isTruncated && (
        <p className={style["note"]}>These are the first {found.projects.length} projects. There are more.</p>
      )}
    </>
  );
}

/** The right column, once it is known who asks. */
function ForYou({ organization, projects }: { readonly organization: string; readonly projects: readonly Project[] }) {
  const session = useQuery(sessionQuery).data;
  const found = session?.organizations.find((one) => one.name === organization);
  if (session === undefined || found === undefined || projects.length === 0) return null;
  return <News organization={found} user={session.user.id} projects={projects} />;
}

export function HomeScreen({ state }: { readonly state: HomeState }) {
  const query = useQuery(projectsQuery(state.organization));
  const [isMaking, setMaking] = useState(false);
  const cursor = useRowInAddress(state);
  const newProject = useLatest(() => setMaking(true));
  const projects = query.data?.projects ?? [];
  const [pinned, setPinned] = useState(() => pinnedOf(state.organization));
  const pin = useLatest((id: string) => setPinned(togglePin(state.organization, id)));
  useHomeCommands(listed(projects, state.filter, state.sort, pinned), cursor, newProject);
  return (
    <div className={style["screen"]}>
      <Head state={state} cursor={cursor} onNew={newProject} />
      <Loaded
        reading={readingOf(query)}
        skeleton={<Skeleton lines={[BARS, BARS, BARS, BARS]} />}
        onSignIn={() => void askToSignIn().then(() => query.refetch())}
      >
        {(found) => (
          <div className={style["columns"]}>
            <div>
              <List state={state} found={found} cursor={cursor} pinned={pinned} onPin={pin} onNew={newProject} />
            </div>
            <ForYou organization={state.organization} projects={found.projects} />
          </div>
        )}
      </Loaded>
      {isMaking && (
        <NewProject
          organization={state.organization}
          taken={projects.map((project) => project.name)}
          onClose={() => setMaking(false)}
          onMade={(name) => {
            setMaking(false);
            cursor.set(name);
            navigate(homeUrl.write({ ...state, filter: "", row: name }), "replace");
            toast(`The project ${name} is there.`);
          }}
        />
      )}
    </div>
  );
}
