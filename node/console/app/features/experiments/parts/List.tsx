// The experiments of a project that is known.
import { useEffect, useMemo, useState, type KeyboardEvent } from "react";
import type { Experiment } from "../../../api/experiments";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { NamedProject } from "../../../api/schema";
import { Button, IconButton } from "../../../design/Button";
import { ErrorState } from "../../../design/ErrorState";
import { Grid } from "../../../design/Grid";
import { createGridState, type GridState } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Kbd } from "../../../design/Kbd";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { toast } from "../../../design/Toast";
import { VersionControl } from "../../../design/VersionControl";
import { copyText } from "../../../lib/clipboard";
import { useCommands, useLatest } from "../../../lib/commands";
import { useLinks } from "../../../lib/links";
import { exactCount } from "../../../lib/numbers";
import { navigate } from "../../../lib/router";
import { announce } from "../../../lib/store";
import { atVersion } from "../../../lib/version";
import { chosenNames, MOST_COMPARED } from "../choosing";
import { experimentsCommands } from "../commands";
import { nextSort, type ListedExperiment } from "../listing";
import style from "../screen.module.css";
import { experimentsUrl, type ExperimentsState } from "../url";
import { useBaseline, type Baseline } from "../useBaseline";
import { useListed } from "../useListed";
import { actionsId, listColumns, type ListActions } from "./columns";
import { DeleteDialog, DetailsDialog, type Place } from "./Dialogs";
import { NoExperiments } from "./NoExperiments";
import { ScoreChart } from "./ScoreChart";

const FILTER_ID = "experiment-filter";
const LINES = Array.from({ length: 6 }, () => [24, 12, 6, 10, 10, 8, 8]);
const ROW_MS = 200;

type Opened = { readonly what: "none" | "version" } | { readonly what: "details" | "delete"; readonly one: ListedExperiment };

const idOf = ({ experiment }: ListedExperiment): string => experiment.id;

interface ListProps {
  readonly state: ExperimentsState;
  readonly project: NamedProject;
}

interface HeadProps {
  readonly state: ExperimentsState;
  readonly count: number;
  readonly onChooseVersion: () => void;
}

function Head({ state, count, onChooseVersion }: HeadProps) {
  return (
    <header className={style["head"]}>
      <h1 tabIndex={-1}>Experiments</h1>
      {count > 0 && (
        <label className={style["filter"]}>
          <Icon name="search" />
          <span className="only-spoken">Search the experiments by name, tag, commit or metadata</span>
          <input
            id={FILTER_ID}
            type="search"
            placeholder="Search names, tags, commits"
            autoComplete="off"
            value={state.filter}
            onChange={(event) =>
              navigate(experimentsUrl.write({ ...state, filter: event.currentTarget.value }), "replace")
            }
            onKeyDown={(event) => {
              if (event.key === "Escape") event.currentTarget.blur();
            }}
          />
        </label>
      )}
      <IconButton icon="history" label="Show an earlier state" onClick={onChooseVersion} />
    </header>
  );
}

interface ChosenProps {
  readonly grid: GridState;
  readonly onCompare: () => void;
}

/** What can be done with the selected experiments. */
function Chosen({ grid, onCompare }: ChosenProps) {
  const count = grid.selection.ids.value.size;
  if (count === 0) return null;
  const canCompare = count >= 2 && count <= MOST_COMPARED;
  return (
    <div className={style["chosen"]} role="toolbar" aria-label="Selected experiments">
      <span>{count === 1 ? "1 experiment" : `${exactCount(count)} experiments`}</span>
      {canCompare ? (
        <Button look="primary" onClick={onCompare}>
          Compare <Kbd keys="Enter" />
        </Button>
      ) : (
        <span className={style["faint"]}>Select 2 to {MOST_COMPARED} to compare them.</span>
      )}
      <Button look="quiet" onClick={() => grid.selection.clear()}>
        Clear
      </Button>
    </div>
  );
}

async function copied(text: string, what: string): Promise<void> {
  const isDone = await copyText(text);
  toast(isDone ? `The ${what} is copied.` : "The browser refused to copy.", !isDone);
}

/** Keeps the current row in the address, a moment after it came to rest. */
function useRowInAddress(state: ExperimentsState, grid: GridState, found: readonly ListedExperiment[]): void {
  const write = useLatest((id: string | null) => {
    const row = found.find((one) => idOf(one) === id)?.experiment.name;
    if (row !== undefined && row !== state.row) navigate(experimentsUrl.write({ ...state, row }), "stay");
  });
  useEffect(() => {
    const one = found.find(({ experiment }) => experiment.name === state.row);
    if (one !== undefined && grid.cursor.at.peek() === null) grid.cursor.set(idOf(one));
  }, [found, state.row, grid]);
  useEffect(() => {
    let timer = 0;
    const stop = grid.cursor.at.subscribe((id) => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => write(id), ROW_MS);
    });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [grid, write]);
}

/** What can be done with an experiment. The past is only looked at. */
function menuOf(
  one: ListedExperiment,
  href: string,
  isPast: boolean,
  baseline: Baseline,
  open: (opened: Opened) => void,
): ReturnType<ListActions["menu"]> {
  const { experiment, isBaseline } = one;
  return [
    { id: "open", title: "Open", run: () => navigate(href, "push") },
    ...(isPast
      ? []
      : [
          { id: "baseline", title: isBaseline ? "Stop being the baseline" : "Make it the baseline", run: () => baseline.toggle(experiment) },
          { id: "details", title: "Name, tags and metadata", run: () => open({ what: "details", one }) },
        ]),
    { id: "name", title: "Copy the name", run: () => void copied(experiment.name, "name") },
    { id: "id", title: "Copy the id", run: () => void copied(experiment.id, "id") },
    ...(isPast ? [] : [{ id: "delete", title: "Delete", run: () => open({ what: "delete", one }) }]),
  ];
}

function useScreen({ state, project }: ListProps) {
  const { organization } = state;
  const links = useLinks();
  const [grid] = useState(() => createGridState());
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const read = useListed(state, project.id);
  const baseline = useBaseline({ organization, projectId: project.id }, read.baseline);
  const href = (name: string): string => atVersion(links.experiment(organization, state.project, name), state.version);
  const isPast = state.version !== "";
  const current = (): ListedExperiment | undefined => read.found.find((one) => idOf(one) === grid.cursor.at.peek());
  const compare = useLatest(() => {
    const names = chosenNames(read.all, grid.selection.ids.peek(), read.baseline);
    const [first, ...others] = names;
    if (first !== undefined && others.length > 0 && names.length <= MOST_COMPARED) {
      navigate(atVersion(links.experiment(organization, state.project, first, others), state.version), "push");
    }
  });
  const act = useLatest((run: (one: ListedExperiment) => void) => {
    const one = current();
    if (one !== undefined) run(one);
  });
  const actions: ListActions = useMemo(
    () => ({
      href,
      datasetHref: (name, version) => links.dataset(organization, state.project, name, version),
      menu: (one) => menuOf(one, href(one.experiment.name), isPast, baseline, setOpened),
    }),
    [organization, state.project, state.version, links],
  );
  const undoable = useLatest(() => baseline.undo());
  const hasUndo = baseline.canUndo;
  const commands = useMemo(
    () =>
      experimentsCommands(grid, {
        focusFilter: () => document.getElementById(FILTER_ID)?.focus(),
        compare,
        makeBaseline: () => act((one) => baseline.toggle(one.experiment)),
        undo: undoable,
        openActions: () => act((one) => document.getElementById(actionsId(idOf(one)))?.click()),
        details: () => act((one) => setOpened({ what: "details", one })),
        remove: () => act((one) => setOpened({ what: "delete", one })),
        canCompare: () => grid.selection.ids.peek().size >= 2,
        canUndo: () => hasUndo,
        hasRow: () => grid.cursor.at.peek() !== null,
        isPast: () => isPast,
        chooseVersion: () => setOpened({ what: "version" }),
      }),
    [grid, compare, act, hasUndo, isPast],
  );
  useCommands(commands);
  useRowInAddress(state, grid, read.found);
  return { ...read, grid, opened, setOpened, actions, compare, href };
}

interface DialogsProps {
  readonly opened: Opened;
  readonly place: Place;
  readonly all: readonly Experiment[];
  readonly onClose: () => void;
}

function Dialogs({ opened, place, all, onClose }: DialogsProps) {
  if (opened.what === "details") {
    const { experiment } = opened.one;
    return <DetailsDialog {...{ place, experiment, onClose }} taken={all.map(({ name }) => name)} />;
  }
  if (opened.what !== "delete") return null;
  return <DeleteDialog {...{ place, onClose }} experiment={opened.one.experiment} rows={opened.one.figures?.rows ?? null} />;
}

export function List(props: ListProps) {
  const { state, project } = props;
  const { experiments, counted, all, found, scores, grid, opened, setOpened, actions, compare, href } = useScreen(props);
  const columns = useMemo(() => listColumns(scores, state.sort, actions), [scores, state.sort, actions]);
  const isRead = experiments.data !== undefined;
  useEffect(() => {
    if (isRead) announce(found.length === 1 ? "1 experiment" : `${found.length} experiments`);
  }, [isRead, found.length]);
  const onKeyDownCapture = (event: KeyboardEvent): void => {
    const isRow = event.target instanceof HTMLElement && event.target.role === "row";
    if (event.key !== "Enter" || !isRow || grid.selection.ids.peek().size < 2) return;
    event.preventDefault();
    event.stopPropagation();
    compare();
  };
  const place = { organization: state.organization, projectId: project.id };
  const score = scores.includes(state.score) ? state.score : scores[0];
  const change = (part: Partial<ExperimentsState>): void => navigate(experimentsUrl.write({ ...state, ...part }), "replace");
  const problem = readingOf(counted).problem;
  return (
    <>
      <Head state={state} count={all.length} onChooseVersion={() => setOpened({ what: "version" })} />
      <VersionControl
        version={state.version}
        isChoosing={opened.what === "version"}
        onChoosing={(is) => setOpened({ what: is ? "version" : "none" })}
        onVersion={(version) => navigate(experimentsUrl.write({ ...state, version }), "push")}
      />
      {score !== undefined && <ScoreChart {...{ found, scores, score, href }} onScore={(one) => change({ score: one })} />}
      {problem !== null && <ErrorState problem={problem} onRetry={() => void counted.refetch()} onSignIn={() => void askToSignIn()} />}
      <div className={style["body"]} onKeyDownCapture={onKeyDownCapture}>
        <Loaded
          reading={readingOf(experiments)}
          skeleton={<Skeleton lines={LINES} />}
          onSignIn={() => void askToSignIn().then(() => experiments.refetch())}
        >
          {() =>
            found.length === 0 ? (
              <NoExperiments state={state} count={all.length} />
            ) : (
              <Grid
                label="Experiments"
                state={grid}
                rows={found}
                rowId={idOf}
                columns={columns}
                total={found.length}
                onOpen={({ experiment }) => navigate(href(experiment.name), "push")}
                onSort={(column) => change({ sort: nextSort(state.sort, column) })}
              />
            )
          }
        </Loaded>
        <Chosen grid={grid} onCompare={compare} />
      </div>
      <Dialogs {...{ opened, place, all }} onClose={() => setOpened({ what: "none" })} />
    </>
  );
}
