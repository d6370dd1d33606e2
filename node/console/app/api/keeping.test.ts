// Tests which unnamed views are old enough to be deleted.
import { expect, test } from "vitest";
import { oldViews } from "./keeping";

const DAY = 86_400_000;
const present = Date.parse("2026-11-28T00:00:00Z");

const view = (id: string, age: number, more: Readonly<Record<string, unknown>> = {}, user = "ann", isUnnamed = true) => ({
  id,
  name: id,
  user_id: user,
  created: new Date(present - age * DAY).toISOString(),
  view_data: { custom_charts: { console_filter: { text: "a", unnamed: isUnnamed } } },
  ...more,
});

test("old unnamed views of the same person are deleted, the oldest first", () => {
  const views = [
    view("new", 3),
    view("old", 40),
    view("older", 90),
    view("bens", 90, {}, "ben"),
    view("named", 90, {}, "ann", false),
    view("other", 90, { view_data: { custom_charts: { console_query: { unnamed: true } } } }),
    view("plain", 90, { view_data: null }),
    view("undated", 90, { created: null }),
  ];
  expect(oldViews(views, "console_filter", "ann", present - 30 * DAY)).toEqual(["older", "old"]);
});

test("not more than twenty are deleted at once", () => {
  const views = Array.from({ length: 50 }, (_, index) => view(String(index), 31 + index));
  const found = oldViews(views, "console_filter", "ann", present - 30 * DAY);
  expect(found).toHaveLength(20);
  expect(found[0]).toBe("49");
});
