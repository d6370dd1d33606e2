// The comparison of experiments that are known: what it says as a whole, its rows, and the open pair.
import { useMemo } from "react";
import { askToSignIn } from "../../../api/gate";
import { problemOf } from "../../../lib/errors";
import type { Compared } from "../../../api/comparison";
import { literal } from "../../../btql";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { toast } from "../../../design/Toast";
import { VersionControl } from "../../../design/VersionControl";
import { exportRows } from "../exports";
import { measureOf } from "../measures";
import { metadataPaths } from "../rows";
import { useScreen, type CompareProps, type Screen } from "../useScreen";
import { Cards } from "./Cards";
import style from "./Compare.module.css";
import { FilterLine } from "./FilterLine";
import { GridView } from "./GridView";
import { Head } from "./Head";
import { KeyDialog } from "./KeyDialog";
import { Kinds } from "./Kinds";
import { NoRows, Notes, Unread } from "./Notes";
import { PairPanel } from "./PairPanel";
import { Groups, Summary } from "./Summary";
import { TableView } from "./TableView";
import { Toolbar } from "./Toolbar";

const LINES = [[20, 20, 20], [60, 10], [60, 10], [60, 10]];

type ViewProps = CompareProps & Screen & { readonly compared: Compared };

function Rows(props: ViewProps) {
  const { state, compared, read, rows, score, change, judging, onKey } = props;
  const { pairs, more } = read;
  if (state.layout === "summary") return <Summary {...{ compared, onKey }} judge={judging.judge} />;
  if (pairs.length === 0) return <NoRows state={state} change={change} />;
  if (state.layout === "grid") {
    return <GridView {...{ compared, pairs }} grid={rows.grid} isDiff={state.isDiff} onEnd={more} onOpen={rows.openPair} />;
  }
  return (
    <TableView
      {...{ compared, pairs, score }}
      grid={rows.grid}
      isDiff={state.isDiff}
      unfolded={rows.unfolded}
      isReadingMore={read.isReadingMore}
      onEnd={more}
      onOpen={rows.openRow}
    />
  );
}

function Body(props: ViewProps) {
  const { state, project, compared, read, rows, score, change, judging, onKey, TracePanel } = props;
  const onGroup = (value: unknown): void => {
    const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (!isPlain && value !== null) return;
    const condition = value === null ? `${state.group} is null` : `${state.group} = ${literal(isPlain ? value : null)}`;
    change({ filter: state.filter === "" ? condition : `(${state.filter}) and ${condition}` });
  };
  return (
    <>
      <Cards {...{ compared, score, state, change, onKey }} judge={judging.judge} />
      {state.group !== "" && compared.groups.length > 0 && <Groups compared={compared} group={state.group} onGroup={onGroup} />}
      {state.layout !== "summary" && (
        <div className={style["kinds"]}>
          <Kinds compared={compared} score={score} only={state.only} onOnly={(only) => change({ only })} />
        </div>
      )}
      <div className={style["rows"]}>
        <div className={read.isOld ? `${style["list"]} ${style["old"]}` : style["list"]}>
          <Rows {...props} />
        </div>
        {state.row !== "" && (
          <PairPanel
            {...{ state, project, compared, TracePanel, change }}
            request={read.request}
            known={rows.known}
            onClose={rows.actions.close}
            onStep={rows.actions.step}
          />
        )}
      </div>
    </>
  );
}

/** The tools, with the filter as the bar that was handed over, or as a line of text. */
function Tools(props: CompareProps & Screen) {
  const { state, main, others, FilterBar, read, change, hasBase, score, copy, setOpened } = props;
  const { fault, compared, pairs, request } = read;
  const paths = useMemo(() => metadataPaths(pairs), [pairs]);
  const onExport = async (format: "csv" | "jsonl" | "parquet"): Promise<void> => {
    try {
      const names = [main, ...others].map(({ name }) => name);
      await exportRows(state.organization, request, compared?.key ?? "input", format, names);
    } catch (error) {
      toast(`The rows were not exported. ${problemOf(error, 0).text}`, true);
    }
  };
  const scope = {
    organization: state.organization,
    source: { kind: "experiment", id: main.id },
    shape: "traces",
    bounds: { from: null, to: null },
    filter: state.filter,
    version: request.version,
  } as const;
  const onFilter = (filter: string): void => change({ filter });
  const filter =
    FilterBar === null ? (
      <FilterLine filter={state.filter} fault={fault?.at === "filter" ? fault.message : null} onFilter={onFilter} />
    ) : (
      <FilterBar scope={scope} onChange={onFilter} />
    );
  return (
    <Toolbar
      {...{ state, change, filter, hasBase, paths }}
      score={measureOf(score).title}
      pairedBy={compared?.key ?? ""}
      onCopy={copy}
      onExport={(format) => void onExport(format)}
      onVersion={() => setOpened("version")}
      onKey={() => setOpened("key")}
    />
  );
}

function Dialogs({ state, project, opened, setOpened, read }: CompareProps & Screen) {
  const close = (): void => setOpened("none");
  if (opened !== "key" || state.version !== "") return null;
  const current = read.compared?.key ?? "input";
  return <KeyDialog organization={state.organization} project={project} current={current} onClose={close} />;
}

export function Compare(props: CompareProps) {
  const { state, main, others, unknown, project } = props;
  const screen = useScreen(props);
  const { read, change, onCompared, onLook } = screen;
  const { fault, compared } = read;
  return (
    <div className={style["compare"]}>
      <VersionControl
        version={state.version}
        isChoosing={screen.opened === "version"}
        onChoosing={(is) => screen.setOpened(is ? "version" : "none")}
        onVersion={(version) => change({ version })}
      />
      <div className={style["top"]}>
        <Head {...{ state, main, others, onCompared, onLook }} projectId={project.id} />
      </div>
      <Tools {...props} {...screen} />
      <Notes {...{ state, unknown, compared, fault, change }} judging={screen.judging} />
      {fault !== null && fault.at !== "other" && compared === undefined ? (
        <Unread fault={fault} change={change} />
      ) : (
        <div className={style["body"]}>
          <Loaded
            reading={read.reading}
            skeleton={<Skeleton lines={LINES} />}
            onSignIn={() => void askToSignIn().then(() => read.reading.again())}
          >
            {(found) => <Body {...props} {...screen} compared={found} />}
          </Loaded>
        </div>
      )}
      <Dialogs {...props} {...screen} />
    </div>
  );
}
