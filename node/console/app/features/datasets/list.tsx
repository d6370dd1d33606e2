// The datasets of a project, the last changed first.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { askToSignIn } from "../../api/gate";
import type { Dataset } from "../../api/datasets";
import { projectQuery, readingOf } from "../../api/queries";
import type { NamedProject } from "../../api/schema";
import { Button, ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Grid } from "../../design/Grid";
import { createGridState, gridCommands, type GridState } from "../../design/GridTypes";
import { Icon } from "../../design/Icon";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { Skeleton } from "../../design/Skeleton";
import { useCommands, useLatest } from "../../lib/commands";
import { useLinks } from "../../lib/links";
import { exactCount } from "../../lib/numbers";
import { navigate } from "../../lib/router";
import { listed, type ListedDataset } from "./listing";
import { listColumns, type ListActions } from "./parts/listColumns";
import { DeleteDataset, DetailsDialog, NewDataset } from "./parts/RecordDialogs";
import { datasetsQuery, fillsQuery, snapshotCountsQuery, usesQuery } from "./queries";
import style from "./list.module.css";
import { datasetDefaults, datasetsUrl, datasetUrl, type DatasetsState } from "./url";

const FILTER_ID = "dataset-filter";
const LINES = Array.from({ length: 6 }, () => [20, 36, 6, 10, 6, 6]);

type Opened = { readonly what: "none" | "new" } | { readonly what: "details" | "delete"; readonly one: ListedDataset };

const idOf = ({ dataset }: ListedDataset): string => dataset.id;

/** The datasets with what is counted of them. */
function useListed(organization: string, projectId: string, filter: string) {
  const datasets = useQuery(datasetsQuery(organization, projectId));
  const ids = useMemo(() => (datasets.data ?? []).map(({ id }) => id).sort(), [datasets.data]);
  const fills = useQuery({ ...fillsQuery(organization, projectId, ids), enabled: datasets.data !== undefined }).data;
  const uses = useQuery(usesQuery(organization, projectId)).data;
  const snapshots = useQuery(snapshotCountsQuery(organization)).data;
  const found = useMemo(
    () => listed({ datasets: datasets.data ?? [], fills, uses, snapshots }, filter),
    [datasets.data, fills, uses, snapshots, filter],
  );
  return { datasets, found };
}

function Head({ state, onNew }: { readonly state: DatasetsState; readonly onNew: () => void }) {
  return (
    <header className={style["head"]}>
      <h1 tabIndex={-1}>Datasets</h1>
      <label className={style["filter"]}>
        <Icon name="search" />
        <span className="only-spoken">Filter the datasets by name or description</span>
        <input
          id={FILTER_ID}
          type="search"
          placeholder="Filter by name"
          autoComplete="off"
          value={state.filter}
          onChange={(event) => navigate(datasetsUrl.write({ ...state, filter: event.currentTarget.value }), "replace")}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
      </label>
      <Button icon="plus" onClick={onNew}>
        New dataset
      </Button>
    </header>
  );
}

interface DialogsProps {
  readonly state: DatasetsState;
  readonly project: NamedProject;
  readonly opened: Opened;
  readonly datasets: readonly Dataset[];
  readonly onClose: () => void;
}

function Dialogs({ state, project, opened, datasets, onClose }: DialogsProps) {
  const place = { organization: state.organization, projectId: project.id };
  const taken = datasets.map(({ name }) => name);
  switch (opened.what) {
    case "none":
      return null;
    case "new": {
      const open = (name: string): void =>
        navigate(datasetUrl.write(datasetDefaults(state.organization, state.project, name)), "push");
      return <NewDataset place={place} taken={taken} onMade={open} onClose={onClose} />;
    }
    case "details":
      return (
        <DetailsDialog place={place} dataset={opened.one.dataset} taken={taken} onChanged={() => undefined} onClose={onClose} />
      );
    case "delete":
      return (
        <DeleteDataset
          place={place}
          dataset={opened.one.dataset}
          rows={opened.one.rows}
          onDeleted={() => undefined}
          onClose={onClose}
        />
      );
  }
}

interface FoundProps {
  readonly state: DatasetsState;
  /** How many datasets there are, with those that the filter leaves out. */
  readonly all: number;
  readonly found: readonly ListedDataset[];
  readonly grid: GridState;
  readonly actions: ListActions;
  readonly onNew: () => void;
}

/** The list, or why it is empty. */
function Found({ state, all, found, grid, actions, onNew }: FoundProps) {
  const links = useLinks();
  const columns = useMemo(() => listColumns(actions), [actions]);
  if (all === 0) {
    const ways = (
      <>
        <Button look="primary" onClick={onNew}>
          New dataset
        </Button>
        <ButtonLink href={links.logs(state.organization, state.project)}>Open the logs</ButtonLink>
      </>
    );
    return <Empty action={ways}>This project has no dataset yet. Make one and import a file, or add rows from the logs.</Empty>;
  }
  if (found.length === 0) {
    const showAll = (): void => navigate(datasetsUrl.write({ ...state, filter: "" }), "replace");
    return (
      <Empty action={<Button onClick={showAll}>Show all {exactCount(all)}</Button>}>
        No dataset has “{state.filter}” in its name or description.
      </Empty>
    );
  }
  return (
    <Grid
      label="Datasets"
      state={grid}
      rows={found}
      rowId={idOf}
      columns={columns}
      total={found.length}
      isSelectable={false}
      onOpen={({ dataset }) => navigate(actions.href(dataset.name), "push")}
    />
  );
}

function List({ state, project }: { readonly state: DatasetsState; readonly project: NamedProject }) {
  const { datasets, found } = useListed(state.organization, project.id, state.filter);
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const [grid] = useState(() => createGridState());
  const hrefOf = (name: string): string => datasetUrl.write(datasetDefaults(state.organization, state.project, name));
  const openNew = useLatest(() => setOpened({ what: "new" }));
  const actions: ListActions = useMemo(
    () => ({
      href: hrefOf,
      details: (one) => setOpened({ what: "details", one }),
      remove: (one) => setOpened({ what: "delete", one }),
    }),
    [state.organization, state.project],
  );
  useCommands(
    useMemo(
      () => [
        { id: "datasets.new", title: "New dataset", group: "Datasets", keys: "n", run: () => openNew() },
        { id: "datasets.filter", title: "Filter the datasets", group: "Datasets", keys: "/", run: () => document.getElementById(FILTER_ID)?.focus() },
        ...gridCommands(grid, "Datasets", "dataset").filter(({ keys }) => keys !== "x"),
      ],
      [grid, openNew],
    ),
  );
  useEffect(() => {
    const one = found.find(({ dataset }) => dataset.name === state.row);
    if (one !== undefined) grid.cursor.set(one.dataset.id);
  }, [found, state.row, grid]);
  const all = datasets.data?.length ?? 0;
  return (
    <>
      <Head state={state} onNew={openNew} />
      <div className={style["body"]}>
        <Loaded
          reading={readingOf(datasets)}
          skeleton={<Skeleton lines={LINES} />}
          onSignIn={() => void askToSignIn().then(() => datasets.refetch())}
        >
          {() => <Found {...{ state, all, found, grid, actions }} onNew={openNew} />}
        </Loaded>
      </div>
      <Dialogs {...{ state, project, opened }} datasets={datasets.data ?? []} onClose={() => setOpened({ what: "none" })} />
    </>
  );
}

export function DatasetsScreen({ state }: { readonly state: DatasetsState }) {
  const links = useLinks();
  const query = useQuery(projectQuery(state.organization, state.project));
  return (
    <div className={style["screen"]}>
      <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(project) =>
          project === null ? (
            <Empty action={<ButtonLink href={links.home(state.organization)}>Show the projects</ButtonLink>}>
              {state.organization} has no project {state.project} that you may see.
            </Empty>
          ) : (
            <List key={project.id} state={state} project={project} />
          )
        }
      </Loaded>
    </div>
  );
}
