// The query editor: queries in tabs, each with its result as a table, a chart, JSON, and the plan.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { askToSignIn } from "../../api/gate";
import { sessionQuery } from "../../api/queries";
import type { EditorActions } from "../../design/EditorTypes";
import { VersionControl } from "../../design/VersionControl";
import { useCommands, useLatest } from "../../lib/commands";
import { queryCommands } from "./commands";
import { dialectOf, lexemesOf } from "./lexer";
import { Dialogs, type Opened } from "./parts/Dialogs";
import { Examples } from "./parts/Examples";
import { QueryInput } from "./parts/QueryInput";
import { Result } from "./parts/Result";
import { PANEL_ID, tabId, TabStrip } from "./parts/TabStrip";
import { Toolbar, type ToolbarActions } from "./parts/Toolbar";
import type { Owner } from "./saved";
import style from "./screen.module.css";
import type { QueryPart } from "./tabs";
import type { QueryState } from "./url";
import { useBench, type Bench } from "./useBench";

/** How long a press on Stop is taken for one on Run, which was in its place when a link began to run by itself. */
const SETTLED_MS = 500;

function useToolbar(bench: Bench, open: (dialog: Opened) => void, save: () => void): ToolbarActions {
  return useMemo(
    () => ({
      run: bench.run,
      stop: () => {
        const { started } = bench.runner.of(bench.tab.peek().id).peek();
        if (performance.now() - started >= SETTLED_MS) bench.stop();
      },
      version: () => open("version"),
      history: () => open("history"),
      saved: () => open("saved"),
      save,
      saveAs: () => open("name"),
      examples: () => open("examples"),
      syntax: (syntax) => bench.change({ syntax }),
      exportAs: (format) => void bench.exportAs(format),
      exportLong: () => open("long"),
      copy: (kind) => void bench.copy(kind),
    }),
    [bench, open, save],
  );
}

function useQueryCommands(bench: Bench, save: () => void, focusEditor: () => void): void {
  const runOf = () => bench.runner.of(bench.tab.peek().id).peek();
  const commands = useMemo(
    () =>
      queryCommands({
        run: bench.run,
        stop: () => void bench.stop(),
        isRunning: () => runOf().status === "running",
        open: () => bench.open(),
        closeTab: () => bench.close(bench.desk.peek().current),
        focusEditor,
        save,
        more: bench.more,
        hasMore: () => runOf().status === "done" && runOf().ran?.result.cursor !== null,
      }),
    [bench, save, focusEditor],
  );
  useCommands(commands);
}

/** The result of the shown tab, or examples where nothing was run yet. */
function Below({ bench, owner }: { readonly bench: Bench; readonly owner: Owner }) {
  const tab = bench.tab.value;
  const run = bench.runner.of(tab.id);
  if (run.value.status === "idle") {
    const choose = (part: QueryPart): void => {
      bench.open(part);
      bench.run();
    };
    return (
      <div className={style["start"]}>
        <Examples organization={owner.name} title="Start from an example" onChoose={choose} />
      </div>
    );
  }
  return (
    <Result
      key={tab.id}
      run={run}
      tab={tab.tab}
      chart={tab.chart}
      onTab={(next) => bench.change({ tab: next })}
      onChart={(chart) => bench.change({ chart })}
      onMore={bench.more}
      onRun={bench.run}
      onSignIn={() => void askToSignIn().then(bench.run)}
    />
  );
}

interface PastProps {
  readonly bench: Bench;
  readonly isChoosing: boolean;
  readonly onChoosing: (isChoosing: boolean) => void;
}

/** The version as of which the shown tab reads. */
function Past({ bench, isChoosing, onChoosing }: PastProps) {
  const tab = bench.tab.value;
  return (
    <VersionControl
      version={tab.version}
      newest={bench.runner.of(tab.id).value.ran?.result.transaction ?? null}
      isChoosing={isChoosing}
      onChoosing={onChoosing}
      onVersion={(version) => {
        bench.change({ version });
        bench.run();
      }}
    />
  );
}

interface BenchViewProps {
  readonly state: QueryState;
  readonly owner: Owner;
  readonly person: string;
}

function BenchView({ state, owner, person }: BenchViewProps) {
  const bench = useBench(state, owner, person);
  const [opened, setOpened] = useState<Opened>("none");
  const editor = useRef<EditorActions | null>(null);
  const tab = bench.tab.value;
  const isEmpty = tab.text.trim() === "";
  const save = useLatest(() => {
    if (isEmpty) return;
    if (tab.saved === "") setOpened("name");
    else void bench.saveChanges();
  });
  const focusEditor = useLatest(() => editor.current?.focus());
  const onReady = useLatest((actions: EditorActions | null) => {
    editor.current = actions;
  });
  useQueryCommands(bench, save, focusEditor);
  const toolbar = useToolbar(bench, setOpened, save);
  return (
    <div className={style["screen"]}>
      <h1 className="only-spoken" tabIndex={-1}>
        Query
      </h1>
      <TabStrip desk={bench.desk.value} onShow={bench.show} onClose={bench.close} onOpen={() => bench.open()} />
      <div id={PANEL_ID} role="tabpanel" aria-labelledby={tabId(tab.id)} className={style["panel"]}>
        <Toolbar
          isRunning={bench.runner.of(tab.id).value.status === "running"}
          isEmpty={isEmpty}
          isSaved={tab.saved !== ""}
          version={tab.version}
          syntax={tab.syntax}
          dialect={dialectOf(lexemesOf(tab.text))}
          actions={toolbar}
        />
        <Past bench={bench} isChoosing={opened === "version"} onChoosing={(is) => setOpened(is ? "version" : "none")} />
        <QueryInput key={tab.id} bench={bench} owner={owner} onReady={onReady} onSave={save} />
        <div className={style["rest"]}>
          <Below bench={bench} owner={owner} />
        </div>
      </div>
      <Dialogs opened={opened} bench={bench} owner={owner} onClose={() => setOpened("none")} />
    </div>
  );
}

interface QueryScreenProps {
  readonly state: QueryState;
  readonly organization: Owner;
}

export function QueryScreen({ state, organization }: QueryScreenProps) {
  const person = useQuery(sessionQuery).data?.user.id;
  if (person === undefined) return null;
  return <BenchView key={organization.id} state={state} owner={organization} person={person} />;
}
