// The desk of the query editor: the open tabs, which of them is shown, and the queries that were run.
import { RESULT_TABS, SYNTAXES, type ResultTab, type Syntax } from "./url";

/** A tab with its query. */
export interface QueryTab {
  readonly id: number;
  /** The name of the saved query that the tab was opened from; empty for none. */
  readonly name: string;
  /** The id of that saved query; empty for none. */
  readonly saved: string;
  readonly text: string;
  /** The id of the unnamed record with exactly this text, which stands in the address of a long query; else empty. */
  readonly link: string;
  readonly syntax: Syntax;
  readonly chart: string;
  readonly version: string;
  readonly tab: ResultTab;
}

export interface Desk {
  readonly tabs: readonly QueryTab[];
  /** The id of the shown tab. */
  readonly current: number;
  /** Texts that were run, the newest last. */
  readonly history: readonly string[];
}

/** How many texts the history keeps. */
export const HISTORY_LENGTH = 200;

/** Longer texts are not kept, so that the browser's small store holds all others. */
export const KEPT_LENGTH = 20_000;

const MOST_TABS = 40;

export type QueryPart = Omit<QueryTab, "id">;

export const EMPTY_PART: QueryPart = {
  name: "",
  saved: "",
  text: "",
  link: "",
  syntax: "auto",
  chart: "",
  version: "",
  tab: "table",
};

export const newDesk = (part: QueryPart = EMPTY_PART): Desk => ({
  tabs: [{ ...part, id: 1 }],
  current: 1,
  history: [],
});

/** The shown tab. A desk always has one. */
export const currentTab = (desk: Desk): QueryTab =>
  desk.tabs.find((tab) => tab.id === desk.current) ?? desk.tabs[0] ?? { ...EMPTY_PART, id: desk.current };

/** Changes the shown tab. Another text has no record yet. */
export function changed(desk: Desk, part: Partial<QueryPart>): Desk {
  const apply = (tab: QueryTab): QueryTab => {
    const isOther = part.text !== undefined && part.text !== tab.text;
    return { ...tab, ...(isOther ? { link: "" } : {}), ...part };
  };
  return { ...desk, tabs: desk.tabs.map((tab) => (tab.id === desk.current ? apply(tab) : tab)) };
}

/** Notes the record of a tab's text, unless the text has been changed since. */
export const linked = (desk: Desk, id: number, text: string, link: string): Desk => ({
  ...desk,
  tabs: desk.tabs.map((tab) => (tab.id === id && tab.text === text ? { ...tab, link } : tab)),
});

export const shown = (desk: Desk, id: number): Desk =>
  desk.tabs.some((tab) => tab.id === id) ? { ...desk, current: id } : desk;

/** Opens a tab beside the shown one. An empty shown tab is used instead. */
export function opened(desk: Desk, part: QueryPart): Desk {
  const before = currentTab(desk);
  if (before.text.trim() === "" && part.text !== "") return changed(desk, part);
  if (desk.tabs.length >= MOST_TABS) return desk;
  const id = Math.max(0, ...desk.tabs.map((tab) => tab.id)) + 1;
  const index = desk.tabs.findIndex((tab) => tab.id === desk.current) + 1;
  return { ...desk, tabs: desk.tabs.toSpliced(index, 0, { ...part, id }), current: id };
}

/** Closes a tab. The last one becomes empty instead. */
export function closed(desk: Desk, id: number): Desk {
  const index = desk.tabs.findIndex((tab) => tab.id === id);
  if (index < 0) return desk;
  const rest = desk.tabs.filter((tab) => tab.id !== id);
  if (rest.length === 0) return { ...newDesk(), history: desk.history };
  const next = rest[Math.min(index, rest.length - 1)]?.id ?? desk.current;
  return { ...desk, tabs: rest, current: desk.current === id ? next : desk.current };
}

/** Adds a text to the history, where it becomes the newest. */
export function recorded(desk: Desk, text: string): Desk {
  if (text.trim() === "" || text.length > KEPT_LENGTH) return desk;
  const history = [...desk.history.filter((one) => one !== text), text].slice(-HISTORY_LENGTH);
  return { ...desk, history };
}

/** What a tab is called: its saved name, else the start of its text. */
export function tabTitle({ name, text }: QueryTab): string {
  if (name !== "") return name;
  const start = text.replace(/--[^\n]*/g, " ").replace(/\s+/g, " ").trim();
  return start === "" ? "New query" : start.slice(0, 60);
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

const textOf = (fields: ReadonlyMap<string, unknown>, key: string): string => {
  const value = fields.get(key);
  return typeof value === "string" ? value : "";
};

function readTab(value: unknown, index: number): QueryTab | null {
  if (!isObject(value)) return null;
  const fields = new Map<string, unknown>(Object.entries(value));
  return {
    id: index + 1,
    name: textOf(fields, "name"),
    saved: textOf(fields, "saved"),
    text: textOf(fields, "text"),
    link: textOf(fields, "link"),
    syntax: SYNTAXES.find((one) => one === fields.get("syntax")) ?? "auto",
    chart: textOf(fields, "chart"),
    version: textOf(fields, "version"),
    tab: RESULT_TABS.find((one) => one === fields.get("tab")) ?? "table",
  };
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Reads a desk from its stored text; null if there is none. What is not well-formed is left out. */
export function readDesk(text: string | null): Desk | null {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? "null");
  } catch {
    return null;
  }
  if (!isObject(stored)) return null;
  const fields = new Map<string, unknown>(Object.entries(stored));
  const tabs = listOf(fields.get("tabs")).slice(0, MOST_TABS).map(readTab).filter((tab) => tab !== null);
  const history = listOf(fields.get("history")).filter((one) => typeof one === "string").slice(-HISTORY_LENGTH);
  if (tabs.length === 0) return { ...newDesk(), history };
  const at = fields.get("at");
  const current = tabs[typeof at === "number" ? at : 0] ?? tabs[0];
  return { tabs, current: current?.id ?? 1, history };
}

/** Writes a desk for storing. Tabs get new ids when they are read. */
export function writeDesk({ tabs, current, history }: Desk): string {
  const kept = tabs.map(({ id: _, ...part }) => (part.text.length > KEPT_LENGTH ? { ...part, text: "" } : part));
  return JSON.stringify({ tabs: kept, at: Math.max(0, tabs.findIndex((tab) => tab.id === current)), history });
}

/**
 * Brings a stored desk and an address together: the tab that has the address's query is shown, or a new one with it.
 * An address without a query shows the tab that was shown last.
 */
export function arrived(desk: Desk | null, part: QueryPart): Desk {
  if (desk === null) return newDesk(part);
  if (part.text === "") {
    const record = desk.tabs.find((tab) => part.link !== "" && tab.link === part.link);
    return record === undefined ? desk : { ...desk, current: record.id };
  }
  const same = desk.tabs.find((tab) => tab.text === part.text);
  if (same === undefined) return opened(desk, part);
  return changed({ ...desk, current: same.id }, { ...part, name: same.name, saved: same.saved, link: part.link || same.link });
}
