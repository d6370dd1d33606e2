// The bench: the desk with its tabs, the runs of their queries, and everything that can be done with them.
import { useComputed, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "react";
import { problemOf } from "../../lib/errors";
import type { ExportFormat } from "../../api/query";
import { toast } from "../../design/Toast";
import { MOST_IN_ADDRESS } from "../../lib/address";
import { copyText } from "../../lib/clipboard";
import { preferences } from "../../lib/preferences";
import { commandOf, curlOf, pythonOf } from "./copies";
import { fileName, followDownload, prepareFile } from "./exports";
import type { RunRequest } from "./queries";
import { createRunner, type Runner } from "./runner";
import { readOne, saveOver, saveUnnamed, type Owner } from "./saved";
import {
  arrived,
  changed,
  closed,
  currentTab,
  EMPTY_PART,
  linked,
  opened,
  recorded,
  shown,
  tabTitle,
  type Desk,
  type QueryPart,
  type QueryTab,
} from "./tabs";
import type { QueryState } from "./url";
import { useDesk } from "./useDesk";
import { readVersion, sentVersion } from "../../lib/version";

export interface Bench {
  readonly desk: Signal<Desk>;
  readonly tab: ReadonlySignal<QueryTab>;
  readonly runner: Runner;
  change(part: Partial<QueryPart>): void;
  show(id: number): void;
  open(part?: QueryPart): void;
  close(id: number): void;
  run(): void;
  more(): void;
  stop(): boolean;
  /** What a run of the shown tab would ask. */
  request(): RunRequest;
  exportAs(format: ExportFormat): Promise<void>;
  copy(kind: "curl" | "python" | "command"): Promise<void>;
  /** Saves the changes of a saved query. */
  saveChanges(): Promise<void>;
}

const requestOf = ({ text, version }: QueryTab): RunRequest => ({
  query: text,
  version: sentVersion(readVersion(version)),
  cursor: null,
  tzOffset: preferences.peek().zone === "utc" ? 0 : new Date().getTimezoneOffset(),
});

async function exportAs(owner: Owner, tab: QueryTab, format: ExportFormat): Promise<void> {
  const name = fileName(tabTitle(tab), new Date());
  try {
    followDownload(await prepareFile(owner.name, requestOf(tab), format, name), `${name}.${format}`);
    toast(`The browser saves ${name}.${format}.`);
  } catch (error) {
    toast(`The export failed. ${problemOf(error, 0).text}`, true);
  }
}

async function copyAs(owner: Owner, tab: QueryTab, kind: "curl" | "python" | "command"): Promise<void> {
  const { query, version } = requestOf(tab);
  const copied = { origin: window.location.origin, organization: owner.name, query, version };
  const text = kind === "curl" ? curlOf(copied) : kind === "python" ? pythonOf(copied) : commandOf(copied);
  if (text === null) {
    toast("This query has characters that a shell may act upon. Copy it as cURL or Python.", true);
    return;
  }
  const isDone = await copyText(text);
  const note = kind === "command" && version !== "" ? " The command reads the newest version: bt sql has no other." : "";
  toast(isDone ? `The query is copied. Its key is the variable BRAINTRUST_API_KEY.${note}` : "The browser refused to copy.", !isDone);
}

async function saveChanges(owner: Owner, tab: QueryTab): Promise<void> {
  try {
    await saveOver(owner, tab.saved, tab);
    toast(`The changes of ${tab.name} are saved.`);
  } catch (error) {
    toast(`Saving failed. ${problemOf(error, 0).text}`, true);
  }
}

/** Makes the record that the address of a long query names. Without it the address leads to the tab in this browser only. */
async function link(desk: Signal<Desk>, owner: Owner, tab: QueryTab): Promise<void> {
  if (tab.text.length <= MOST_IN_ADDRESS || tab.link !== "") return;
  try {
    const id = await saveUnnamed(owner, tab);
    desk.value = linked(desk.peek(), tab.id, tab.text, id);
  } catch (error) {
    toast(`The query is too long for its link, and could not be kept for it. ${problemOf(error, 0).text}`, true);
  }
}

/** Opens the query that an address names by its record, unless a tab has it already. */
async function openRecord(bench: Bench, owner: Owner, id: string): Promise<void> {
  if (bench.desk.peek().tabs.some((tab) => tab.link === id && tab.text !== "")) return;
  try {
    const part = await readOne(owner, id);
    if (part === null) throw new Error("The record is not of a query.");
    bench.desk.value = arrived(bench.desk.peek(), part);
    bench.run();
  } catch (error) {
    toast(`The query of this link could not be read. ${problemOf(error, 0).text}`, true);
  }
}

export function useBench(state: QueryState, owner: Owner, person: string): Bench {
  const desk = useDesk(state, `${person}.${owner.id}`);
  const tab = useComputed(() => currentTab(desk.value));
  const bench = useMemo((): Bench => {
    const runner = createRunner(owner.name);
    const set = (next: Desk): void => {
      desk.value = next;
    };
    const run = (): void => {
      const { id, text } = currentTab(desk.peek());
      if (text.trim() === "") return;
      set(recorded(desk.peek(), text));
      void runner.start(id, requestOf(currentTab(desk.peek())));
      void link(desk, owner, currentTab(desk.peek()));
    };
    return {
      desk,
      tab,
      runner,
      change: (part) => set(changed(desk.peek(), part)),
      show: (id) => set(shown(desk.peek(), id)),
      open: (part = EMPTY_PART) => set(opened(desk.peek(), part)),
      close: (id) => {
        runner.stop(id);
        set(closed(desk.peek(), id));
      },
      run,
      more: () => void runner.more(currentTab(desk.peek()).id),
      stop: () => runner.stop(currentTab(desk.peek()).id),
      request: () => requestOf(currentTab(desk.peek())),
      exportAs: (format) => exportAs(owner, currentTab(desk.peek()), format),
      copy: (kind) => copyAs(owner, currentTab(desk.peek()), kind),
      saveChanges: () => saveChanges(owner, currentTab(desk.peek())),
    };
  }, [desk, owner.id, owner.name]);
  useEffect(() => {
    // A link to a query shows its result, as a link to any list shows its rows.
    if (state.text !== "" || (state.view !== "" && bench.tab.peek().link === state.view)) bench.run();
    return () => bench.runner.stopAll();
  }, [bench]);
  useEffect(() => {
    if (state.text === "" && state.view !== "") void openRecord(bench, owner, state.view);
  }, [bench, state.view]);
  return bench;
}
