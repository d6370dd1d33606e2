// An open trace: its facts, its tree or another view of it, and the detail of the selected span.
import { useId, useMemo, useRef, useState } from "react";
import { readingOf } from "../../api/queries";
import { askToSignIn } from "../../api/gate";
import { Loaded } from "../../design/Loaded";
import { Skeleton } from "../../design/Skeleton";
import { VersionControl } from "../../design/VersionControl";
import { useCommands, useLatest } from "../../lib/commands";
import type { TracePanelProps } from "../../lib/trace";
import { traceCommands, type TraceActions } from "./commands";
import type { Fields } from "../../api/narrow";
import type { SpanPlace } from "../../api/spans";
import { AddToDataset } from "./detail/AddToDataset";
import { Contents } from "./detail/Contents";
import { Detail } from "./detail/Detail";
import style from "./panel.module.css";
import { Absent } from "./parts/Absent";
import { Flame } from "./parts/Flame";
import { Header } from "./parts/Header";
import { Minimap } from "./parts/Minimap";
import { Thread } from "./parts/Thread";
import { Tree } from "./parts/Tree";
import { criticalPath, NONE, type TraceTree } from "./tree/model";
import { useTrace, type OpenTrace } from "./useTrace";

/** Bars of the tree while it is read, as shares of its width. */
const LINES = [[40], [60], [50], [70], [45]] as const;

const errorsOf = (tree: TraceTree): readonly number[] => [...tree.order].filter((index) => tree.spans[index]?.hasError === true);

interface Doors {
  readonly menuId: string;
  add(): void;
  find(): void;
  chooseVersion(): void;
}

function useTraceCommands(props: TracePanelProps, trace: OpenTrace, { menuId, add, find, chooseVersion }: Doors): void {
  const { view, version, onView, onVersion, onStep, onClose } = props;
  const actions = useLatest((what: keyof TraceActions, by: number): void => {
    if (what === "close") onClose?.();
    if (what === "step") onStep?.(by > 0 ? 1 : -1);
    if (what === "nextError" && trace.tree !== null) trace.step(errorsOf(trace.tree), by > 0 ? 1 : -1, "error");
    if (what === "filter") trace.toggleFilter();
    if (what === "find") find();
    if (what === "unfoldTo") trace.unfoldTo(by);
    if (what === "addToDataset") add();
    if (what === "chooseVersion") chooseVersion();
    if (what === "comment") onView({ ...view, tab: "review" });
    if (what === "actions") document.getElementById(menuId)?.click();
  });
  const hasList = onStep !== undefined;
  const isPast = version !== "";
  const hasVersions = onVersion !== undefined;
  const commands = useMemo(
    () =>
      traceCommands({
        close: () => actions("close", 0),
        step: (by) => actions("step", by),
        nextError: (by) => actions("nextError", by),
        filter: () => actions("filter", 0),
        find: () => actions("find", 0),
        unfoldTo: (level) => actions("unfoldTo", level),
        addToDataset: () => actions("addToDataset", 0),
        comment: () => actions("comment", 0),
        actions: () => actions("actions", 0),
        chooseVersion: () => actions("chooseVersion", 0),
        hasList: () => hasList,
        isPast: () => isPast,
        hasVersions: () => hasVersions,
      }),
    [actions, hasList, isPast, hasVersions],
  );
  useCommands(commands);
}

function Lens({ trace, tree, lens }: { readonly trace: OpenTrace; readonly tree: TraceTree; readonly lens: string }) {
  const critical = useMemo(() => criticalPath(tree), [tree]);
  if (lens === "thread") return <Thread trace={trace} tree={tree} />;
  return (
    <>
      <Minimap trace={trace} tree={tree} critical={critical} />
      {lens === "flame" ? <Flame trace={trace} tree={tree} /> : <Tree trace={trace} tree={tree} critical={critical} />}
    </>
  );
}

function Opened({ props, trace, tree }: { readonly props: TracePanelProps; readonly trace: OpenTrace; readonly tree: TraceTree }) {
  const { view, onView } = props;
  if (tree.spans.length === 0) return <Absent props={props} />;
  const head = trace.selected === NONE ? undefined : tree.spans[trace.selected];
  return (
    <div className={style["body"]}>
      <div className={style["lens"]}>
        <Lens trace={trace} tree={tree} lens={view.lens} />
      </div>
      <div className={style["detail"]}>
        <Detail
          place={trace.place}
          head={head}
          tab={view.tab}
          onTab={(tab) => onView({ ...view, tab })}
          tree={tree}
          project={props.project}
          {...(props.onFilter === undefined ? {} : { onFilter: props.onFilter })}
        />
      </div>
    </div>
  );
}

export function TracePanel(props: TracePanelProps) {
  const trace = useTrace(props);
  const { version, onVersion } = props;
  const [isAdding, setAdding] = useState(false);
  const [isChoosing, setChoosing] = useState(false);
  const findField = useRef<HTMLInputElement>(null);
  const menuId = useId();
  const add = (): void => setAdding(true);
  const chooseVersion = (): void => setChoosing(true);
  useTraceCommands(props, trace, { menuId, add, chooseVersion, find: () => findField.current?.focus() });
  const head = trace.tree === null || trace.selected === NONE ? undefined : trace.tree.spans[trace.selected];
  return (
    <section
      className={style["panel"]}
      aria-label="Trace"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented || props.onClose === undefined) return;
        event.preventDefault();
        props.onClose();
      }}
    >
      <Header props={props} trace={trace} head={head} findField={findField} menuId={menuId} onAdd={add} onChooseVersion={chooseVersion} />
      {onVersion !== undefined && <VersionControl {...{ version, onVersion, isChoosing }} onChoosing={setChoosing} />}
      <Loaded reading={readingOf(trace.reading)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => trace.reading.refetch())}>
        {() => trace.tree !== null && <Opened props={props} trace={trace} tree={trace.tree} />}
      </Loaded>
      {isAdding && head !== undefined && (
        <AddToDataset place={trace.place} projectId={props.project.id} head={head} onClose={() => setAdding(false)} />
      )}
    </section>
  );
}

/** The contents of a span alone, rendered for reading. */
export function SpanContents({ place, row }: { readonly place: SpanPlace; readonly row: Fields }) {
  return <Contents place={place} row={row} form="rendered" previous={null} writing={null} onFilter={undefined} />;
}
