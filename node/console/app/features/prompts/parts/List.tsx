// The prompts of a project, or its functions, the last changed first.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { askToSignIn } from "../../../api/gate";
import type { PromptRecord } from "../../../api/prompts";
import { readingOf } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { Copy } from "../../../design/Copy";
import { Empty } from "../../../design/Empty";
import { Grid } from "../../../design/Grid";
import { createGridState, gridCommands, type GridState } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands, useLatest } from "../../../lib/commands";
import { exactCount } from "../../../lib/numbers";
import { navigate } from "../../../lib/router";
import { listCommands } from "../commands";
import { listed, recordsOf, type Listed } from "../listing";
import { allPinnedQuery, countsQuery, modelsQuery, recordsQuery, usesQuery, type ProjectPlace } from "../queries";
import { promptsAddress, promptsDefaults, type PromptsState } from "../url";
import { listColumns, type ListActions } from "./listColumns";
import style from "./list.module.css";
import { DeleteDialog, DetailsDialog, NewPrompt } from "./RecordDialogs";

const FILTER_ID = "prompt-filter";
const LINES = Array.from({ length: 6 }, () => [22, 16, 16, 6, 14, 8, 6]);

const idOf = ({ record }: Listed): string => record.id;

type Opened = { readonly what: "none" | "new" } | { readonly what: "details" | "delete"; readonly record: PromptRecord };

function useListed(state: PromptsState, place: ProjectPlace) {
  const records = useQuery(recordsQuery(place));
  const shown = useMemo(() => recordsOf(records.data ?? [], state.kind), [records.data, state.kind]);
  const ids = useMemo(() => shown.map(({ id }) => id).sort(), [shown]);
  const isKnown = records.data !== undefined;
  const versions = useQuery({ ...countsQuery(place, ids), enabled: isKnown }).data;
  const pinned = useQuery({ ...allPinnedQuery(place, ids), enabled: isKnown }).data;
  const uses = useQuery(usesQuery(place)).data;
  const found = useMemo(
    () => listed({ records: records.data ?? [], versions, pinned, uses }, state.kind, state.filter),
    [records.data, versions, pinned, uses, state.kind, state.filter],
  );
  return { records, all: shown.length, found };
}

interface HeadProps {
  readonly state: PromptsState;
  readonly onNew: (() => void) | null;
}

function Head({ state, onNew }: HeadProps) {
  return (
    <header className={style["listHead"]}>
      <h1 tabIndex={-1}>{state.kind === "prompts" ? "Prompts" : "Functions"}</h1>
      <label className={style["filter"]}>
        <Icon name="search" />
        <span className="only-spoken">Filter by name, slug or model</span>
        <input
          id={FILTER_ID}
          type="search"
          placeholder={state.kind === "prompts" ? "Filter by name or model" : "Filter by name or slug"}
          autoComplete="off"
          value={state.filter}
          onChange={(event) => navigate(promptsAddress({ ...state, filter: event.currentTarget.value }), "replace")}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
      </label>
      {onNew !== null && (
        <Button icon="plus" onClick={onNew}>
          New prompt
        </Button>
      )}
    </header>
  );
}

interface FoundProps extends HeadProps {
  readonly all: number;
  readonly found: readonly Listed[];
  readonly grid: GridState;
  readonly actions: ListActions;
}

function Found({ state, all, found, grid, actions, onNew }: FoundProps) {
  const columns = useMemo(() => listColumns(state.kind, actions), [state.kind, actions]);
  if (all === 0 && onNew !== null) {
    return (
      <Empty action={<Button look="primary" onClick={onNew}>New prompt</Button>}>
        This project has no prompt yet. Make one here, or push prompts from code with the SDK.
      </Empty>
    );
  }
  if (all === 0) {
    return (
      <Empty action={<Copy text="braintrust push" what="the command" title="Copy the command" />}>
        This project has no function yet. Code with the SDK pushes scorers, tools and tasks: “braintrust push”.
      </Empty>
    );
  }
  if (found.length === 0) {
    const showAll = (): void => navigate(promptsAddress({ ...state, filter: "" }), "replace");
    return <Empty action={<Button onClick={showAll}>Show all {exactCount(all)}</Button>}>None of them contains “{state.filter}”.</Empty>;
  }
  return (
    <Grid
      label={state.kind === "prompts" ? "Prompts" : "Functions"}
      state={grid}
      rows={found}
      rowId={idOf}
      columns={columns}
      total={found.length}
      isSelectable={false}
      onOpen={({ record }) => navigate(actions.href(record.slug), "push")}
    />
  );
}

interface DialogsProps {
  readonly opened: Opened;
  readonly place: ProjectPlace;
  readonly taken: readonly string[];
  readonly userId: string;
  readonly onOpen: (slug: string) => void;
  readonly onClose: () => void;
}

function Dialogs({ opened, place, taken, userId, onOpen, onClose }: DialogsProps) {
  const models = useQuery({ ...modelsQuery(place), enabled: opened.what === "new" }).data ?? [];
  switch (opened.what) {
    case "none":
      return null;
    case "new":
      return <NewPrompt {...{ place, taken, models, userId, onClose }} onMade={onOpen} />;
    case "details":
      return <DetailsDialog {...{ place, onClose }} record={opened.record} onDone={() => undefined} />;
    case "delete":
      return <DeleteDialog {...{ place, onClose }} record={opened.record} onDone={() => undefined} />;
  }
}

interface ListProps {
  readonly state: PromptsState;
  readonly place: ProjectPlace;
  readonly userId: string;
}

export function List({ state, place, userId }: ListProps) {
  const { records, all, found } = useListed(state, place);
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const [grid] = useState(() => createGridState());
  const { kind, organization, project } = state;
  const hrefOf = (slug: string): string => promptsAddress(promptsDefaults(kind, organization, project, slug));
  const openNew = useLatest(() => setOpened({ what: "new" }));
  const onNew = kind === "prompts" ? openNew : null;
  const actions: ListActions = useMemo(
    () => ({
      href: hrefOf,
      details: (record) => setOpened({ what: "details", record }),
      remove: (record) => setOpened({ what: "delete", record }),
    }),
    [kind, organization, project],
  );
  useCommands(
    useMemo(() => {
      const group = kind === "prompts" ? "Prompts" : "Functions";
      const focusFilter = (): void => document.getElementById(FILTER_ID)?.focus();
      return [
        ...listCommands({ add: onNew, focusFilter }, group),
        ...gridCommands(grid, group, kind === "prompts" ? "prompt" : "function").filter(({ keys }) => keys !== "x"),
      ];
    }, [grid, kind, onNew]),
  );
  return (
    <div className={style["list"]}>
      <Head {...{ state, onNew }} />
      <div className={style["listBody"]}>
        <Loaded
          reading={readingOf(records)}
          skeleton={<Skeleton lines={LINES} />}
          onSignIn={() => void askToSignIn().then(() => records.refetch())}
        >
          {() => <Found {...{ state, all, found, grid, actions, onNew }} />}
        </Loaded>
      </div>
      <Dialogs
        {...{ opened, place, userId }}
        taken={(records.data ?? []).map(({ slug }) => slug)}
        onOpen={(slug) => navigate(hrefOf(slug), "push")}
        onClose={() => setOpened({ what: "none" })}
      />
    </div>
  );
}
