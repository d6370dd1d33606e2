// The views that people save, as records of the project.
import { KEPT_FILTER, keptIn } from "../../api/kept";
import { isRecord, list, record, text, textOrNull, type Fields } from "../../api/narrow";
import { columnOf, COLUMNS_BY_DEFAULT, type ColumnSpec } from "./columns";
import { LOG_SHAPES, RANGE_BY_DEFAULT } from "./url";
import type { View, ViewedState } from "./views";

/** The record of a view, in the form that Braintrust keeps. */
export function viewRecord(state: ViewedState): Readonly<Record<string, unknown>> {
  const { filter, range, shape, columns, sort, group } = state;
  const isDescending = sort.startsWith("-");
  const sizes = columns.filter((column) => column.width > 0).map((column) => [column.id, column.width]);
  return {
    view_data: {
      search: {
        filter: filter.trim() === "" ? [] : [{ text: filter, label: filter, originType: "btql" }],
        sort: sort === "" ? [] : [{ text: columnOf(sort.replace(/^-/, "")).sortBy ?? "", label: sort, dir: isDescending ? "desc" : "asc" }],
      },
    },
    options: {
      columnOrder: columns.map((column) => column.id),
      columnSizing: Object.fromEntries(sizes),
      columnVisibility: Object.fromEntries(columns.map((column) => [column.id, true])),
      queryShape: shape,
      timeRangeFilter: range,
      grouping: group === "" ? null : group,
    },
  };
}

const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The text of a filter item: text alone, or in one of the forms that records have. */
function filterText(one: unknown): string {
  if (typeof one === "string") return one;
  return isRecord(one) ? (textOrNull(one, "text") ?? textOrNull(one, "btql") ?? "") : "";
}

function readColumns(options: Fields): readonly ColumnSpec[] {
  const sizes = isRecord(options["columnSizing"]) ? options["columnSizing"] : {};
  const hidden = isRecord(options["columnVisibility"]) ? options["columnVisibility"] : {};
  const order = items(options["columnOrder"]).filter((id) => typeof id === "string");
  const columns = order
    .filter((id) => id !== "" && hidden[id] !== false)
    .map((id) => {
      const width = sizes[id];
      return { id, width: typeof width === "number" && width > 0 ? Math.min(Math.max(Math.round(width), 40), 1600) : 0 };
    });
  return columns.length === 0 ? COLUMNS_BY_DEFAULT : columns;
}

function readRangeOf(options: Fields): string {
  const range = options["timeRangeFilter"];
  if (isRecord(range)) return `${textOrNull(range, "from") ?? ""}..${textOrNull(range, "to") ?? ""}`;
  return typeof range === "string" && range !== "" ? range : RANGE_BY_DEFAULT;
}

/** Reads a view. Filters of several expressions must all hold. */
export function readView(value: unknown): View {
  const view = record(value, "view");
  const data = isRecord(view["view_data"]) ? view["view_data"] : {};
  const search = isRecord(data["search"]) ? data["search"] : {};
  const options = isRecord(view["options"]) ? view["options"] : {};
  const filters = items(search["filter"]).map(filterText).filter((one) => one.trim() !== "");
  const [sort] = items(search["sort"]);
  const shape = LOG_SHAPES.find((one) => one === options["queryShape"]) ?? "traces";
  return {
    id: text(view, "id"),
    name: text(view, "name"),
    isSaved: true,
    restores: {
      filter: filters.length > 1 ? filters.map((one) => `(${one})`).join(" AND ") : (filters[0] ?? ""),
      range: readRangeOf(options),
      shape,
      columns: readColumns(options),
      sort: isRecord(sort) ? (textOrNull(sort, "label") ?? "") : "",
      group: textOrNull(options, "grouping") ?? "",
    },
  };
}

/** Reads the views that people saved. Those that keep a long filter have no names. */
export const readViews = (value: unknown): readonly View[] =>
  list(record(value, "views"), "objects")
    .filter((view) => keptIn(record(view, "view"), KEPT_FILTER) === null)
    .map(readView);
