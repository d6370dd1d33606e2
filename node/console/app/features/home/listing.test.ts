// Tests which projects are listed, and in which order.
import { expect, test } from "vitest";
import type { Project } from "../../api/schema";
import { listed } from "./listing";

const project = (name: string, newest: string | null, rows: number, errors: number): Project => ({
  id: name,
  name,
  newest,
  rows,
  errors,
});

const PROJECTS = [
  project("run 10", "2026-05-04T10:00:00Z", 5, 0),
  project("run 9", null, 0, 0),
  project("Bot", "2026-05-04T11:00:00.5Z", 5, 3),
  project("bot 2", "2026-05-04T11:00:00Z", 9, 0),
];

const names = (filter: string, sort: Parameters<typeof listed>[2]): readonly string[] =>
  listed(PROJECTS, filter, sort).map((one) => one.name);

test("projects are sorted by what is asked, then by name", () => {
  expect(names("", "newest")).toEqual(["Bot", "bot 2", "run 10", "run 9"]);
  expect(names("", "name")).toEqual(["Bot", "bot 2", "run 9", "run 10"]);
  expect(names("", "rows")).toEqual(["bot 2", "Bot", "run 10", "run 9"]);
  expect(names("", "errors")).toEqual(["Bot", "bot 2", "run 9", "run 10"]);
});

test("the filter ignores case and spaces around it", () => {
  expect(names(" BOT ", "name")).toEqual(["Bot", "bot 2"]);
  expect(names("x", "name")).toEqual([]);
});

test("pinned projects come first, in the same order among themselves", () => {
  const pinned = new Set(["run 9", "bot 2"]);
  expect(listed(PROJECTS, "", "newest", pinned).map((one) => one.name)).toEqual(["bot 2", "run 9", "Bot", "run 10"]);
});
