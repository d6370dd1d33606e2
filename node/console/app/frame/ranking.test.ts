// Tests which entries of the palette fit.
import { expect, test } from "vitest";
import { fit, ranked } from "./ranking";

const entry = (title: string, group = "Do") => ({ title, group });

test("the start of the title goes before starts of words, and those before their insides", () => {
  expect(fit("Sign out", "sign")).toBeGreaterThan(fit("Design", "sign"));
  expect(fit("Copy the link", "link")).toBeGreaterThan(fit("Unlink", "link"));
  expect(fit("Copy the link", "copy")).toBeGreaterThan(fit("Copy the link", "link"));
});

test("every typed word must occur", () => {
  expect(fit("Sign out everywhere", "out sign")).toBeGreaterThan(0);
  expect(fit("Sign out", "sign in")).toBe(0);
});

test("entries keep their order where they fit alike, and a group's name finds its entries", () => {
  const entries = [entry("Home", "Go"), entry("Theme: dark", "Look"), entry("Theme: light", "Look")];
  expect(ranked(entries, "", 2)).toEqual(entries.slice(0, 2));
  expect(ranked(entries, "theme", 9)).toEqual(entries.slice(1));
  expect(ranked(entries, "look", 9)).toEqual(entries.slice(1));
  expect(ranked(entries, "nothing", 9)).toEqual([]);
});
