// Dashboards: the settings that a record keeps, in the form of Braintrust's own where it has one.
import type { DashboardBody, DashboardRecord } from "../../api/monitor";
import { isRecord, textOrNull, type Fields } from "../../api/narrow";
import { readRange } from "../../lib/range";
import { allCards, cardKey, readCards } from "./cards";
import { BUILT_IN, SHAPES, type Settings } from "./url";

/** The key of what only the console knows, beside the charts of others. */
const KEY = "console_monitor";

export interface Dashboard {
  readonly id: string;
  readonly name: string;
  readonly settings: Settings;
  /** What else its record holds, which is written back as it was. */
  readonly data: Fields;
  readonly options: Fields;
}

const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function filterText(one: unknown): string {
  if (typeof one === "string") return one;
  return isRecord(one) ? (textOrNull(one, "text") ?? textOrNull(one, "btql") ?? "") : "";
}

function filterOf(data: Fields): string {
  const search = data["search"];
  const filters = items(isRecord(search) ? search["filter"] : null).map(filterText).filter((one) => one.trim() !== "");
  return filters.length > 1 ? filters.map((one) => `(${one})`).join(" AND ") : (filters[0] ?? "");
}

function rangeOf(options: Fields): string {
  if (options["spanType"] === "frame") {
    const frame = `${textOrNull(options, "frameStart") ?? ""}..${textOrNull(options, "frameEnd") ?? ""}`;
    return readRange(frame) === null ? BUILT_IN.range : frame;
  }
  const value = textOrNull(options, "rangeValue") ?? "";
  return readRange(value) === null ? BUILT_IN.range : value;
}

function settingsOf({ data, options }: DashboardRecord): Settings {
  const charts = data["custom_charts"];
  const own = isRecord(charts) && isRecord(charts[KEY]) ? charts[KEY] : {};
  const cards = JSON.stringify(own["cards"] ?? null);
  return {
    range: rangeOf(options),
    group: textOrNull(options, "groupBy") ?? "",
    filter: filterOf(data),
    shape: SHAPES.find((one) => one === own["shape"]) ?? BUILT_IN.shape,
    cards: readCards(cards) === null ? "" : cards,
  };
}

export const dashboardOf = (view: DashboardRecord): Dashboard => ({
  id: view.id,
  name: view.name,
  settings: settingsOf(view),
  data: view.data,
  options: view.options,
});

function rangeFields(range: string): Fields {
  if (readRange(range)?.kind !== "between") return { spanType: "range", rangeValue: range, frameStart: null, frameEnd: null };
  const [start = "", end = ""] = range.split("..");
  return { spanType: "frame", rangeValue: null, frameStart: start, frameEnd: end };
}

/** The record of settings. What else a record held before stays. */
export function bodyOf(settings: Settings, before: Dashboard | null): DashboardBody {
  const { range, group, filter, shape } = settings;
  const cards = readCards(settings.cards);
  const shown = new Set((cards ?? []).map(cardKey));
  const charts = before?.data["custom_charts"];
  const search = before?.data["search"];
  const visibility = cards === null ? null : Object.fromEntries(allCards([]).map((card) => [cardKey(card), shown.has(cardKey(card))]));
  return {
    view_data: {
      ...before?.data,
      search: {
        ...(isRecord(search) ? search : {}),
        filter: filter.trim() === "" ? [] : [{ text: filter, label: filter, originType: "btql" }],
      },
      custom_charts: {
        ...(isRecord(charts) ? charts : {}),
        [KEY]: { shape, cards: cards === null ? null : JSON.parse(settings.cards) },
      },
    },
    options: {
      viewType: "monitor",
      options: {
        ...before?.options,
        ...rangeFields(range),
        type: "project",
        groupBy: group === "" ? null : group,
        chartVisibility: visibility,
      },
    },
  };
}
