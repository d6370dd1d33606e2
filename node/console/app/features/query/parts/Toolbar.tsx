// The bar above the editor: run, the version, and what can be done with the query besides.
import { Button } from "../../../design/Button";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { Menu, type MenuItem } from "../../../design/Menu";
import { EXPORT_FORMATS, type ExportFormat } from "../../../api/query";
import { preferences } from "../../../lib/preferences";
import { clock, day } from "../../../lib/time";
import { FORMAT_TITLES } from "../exports";
import type { Dialect } from "../lexer";
import type { Syntax } from "../url";
import { momentOf, readVersion } from "../../../lib/version";
import style from "./Toolbar.module.css";

export interface ToolbarActions {
  run(): void;
  stop(): void;
  version(): void;
  history(): void;
  saved(): void;
  save(): void;
  saveAs(): void;
  examples(): void;
  syntax(syntax: Syntax): void;
  exportAs(format: ExportFormat): void;
  exportLong(): void;
  copy(kind: "curl" | "python" | "command"): void;
}

interface ToolbarProps {
  readonly isRunning: boolean;
  readonly isEmpty: boolean;
  readonly isSaved: boolean;
  readonly version: string;
  readonly syntax: Syntax;
  readonly dialect: Dialect;
  readonly actions: ToolbarActions;
}

function versionText(version: string): string {
  const read = readVersion(version);
  const zone = preferences.value.zone;
  switch (read.kind) {
    case "now":
      return "Now";
    case "moment":
      return `As of ${day(read.at, zone)} ${clock(read.at, zone).slice(0, 8)}`;
    case "transaction": {
      const moment = momentOf(read.id);
      return moment === null ? `As of ${read.id}` : `As of ${day(moment, zone)} ${clock(moment, zone).slice(0, 8)}`;
    }
    case "unknown":
      return `As of ${version}`;
  }
}

const DIALECTS: Readonly<Record<Dialect, string>> = { sql: "SQL", btql: "Clauses" };

function syntaxItems({ syntax, dialect, actions }: ToolbarProps): readonly MenuItem[] {
  const titles: Readonly<Record<Syntax, string>> = {
    auto: `By its first word: ${DIALECTS[dialect]}`,
    sql: "SQL",
    btql: "Clauses",
  };
  return (["auto", "sql", "btql"] as const).map((one, index) => ({
    id: one,
    title: titles[one],
    isChosen: one === syntax,
    ...(index === 0 ? { heading: "Completion offers" } : {}),
    run: () => actions.syntax(one),
  }));
}

function moreItems(actions: ToolbarActions): readonly MenuItem[] {
  return [
    ...EXPORT_FORMATS.map((format, index) => ({
      id: format,
      title: `Export as ${FORMAT_TITLES[format]}`,
      ...(index === 0 ? { heading: "All rows of the query" } : {}),
      run: () => actions.exportAs(format),
    })),
    { id: "long", title: "Run a long query, then save its rows", run: actions.exportLong },
  ];
}

function copyItems(actions: ToolbarActions): readonly MenuItem[] {
  return [
    { id: "curl", title: "Copy a cURL command", heading: "Run it elsewhere", run: () => actions.copy("curl") },
    { id: "python", title: "Copy a Python program", run: () => actions.copy("python") },
    { id: "command", title: "Copy a bt sql command", run: () => actions.copy("command") },
  ];
}

function withIcon(icon: "download" | "code" | "bookmark", title: string) {
  return (
    <>
      <Icon name={icon} />
      <span className={style["word"]}>
        {title}
        <Icon name="down" />
      </span>
    </>
  );
}

export function Toolbar(props: ToolbarProps) {
  const { isRunning, isEmpty, isSaved, version, syntax, dialect, actions } = props;
  const savedItems: readonly MenuItem[] = [
    { id: "open", title: "Open a saved query", run: actions.saved },
    ...(isEmpty
      ? []
      : [
          { id: "save", title: isSaved ? "Save the changes" : "Save", run: actions.save },
          ...(isSaved ? [{ id: "as", title: "Save under another name", run: actions.saveAs }] : []),
        ]),
    { id: "examples", title: "Examples", run: actions.examples },
  ];
  return (
    <div role="toolbar" aria-label="Query" className={style["bar"]}>
      {isRunning ? (
        <Button icon="stop" title="Stop the query (Esc)" onClick={actions.stop}>
          Stop
        </Button>
      ) : (
        <Button
          icon="play"
          look="primary"
          disabled={isEmpty}
          title={withKeys("Run the query", "mod+Enter")}
          onClick={actions.run}
        >
          Run
        </Button>
      )}
      <Button look="quiet" icon="history" title="The version as of which rows are read" onClick={actions.version}>
        <span className={version === "" ? style["word"] : style["past"]}>{versionText(version)}</span>
      </Button>
      <span className={style["space"]} />
      <Menu
        label="Syntax of the query"
        button={
          <>
            <span>{DIALECTS[syntax === "auto" ? dialect : syntax]}</span>
            <Icon name="down" />
          </>
        }
        items={syntaxItems(props)}
      />
      <Button look="quiet" icon="list" title="Queries that were run before (Alt ↑ ↓ in the editor)" onClick={actions.history}>
        <span className={style["word"]}>History</span>
      </Button>
      <Menu label="Saved queries" button={withIcon("bookmark", "Saved")} items={savedItems} />
      {!isEmpty && <Menu label="Copy the query" button={withIcon("code", "Copy")} items={copyItems(actions)} />}
      {!isEmpty && <Menu label="Export the result" button={withIcon("download", "Export")} items={moreItems(actions)} />}
    </div>
  );
}
