// How addresses change: by a new entry of the history, in place, and not at all once the page is another one.
import { beforeEach, expect, test, vi } from "vitest";
import { location, navigate } from "./router";

/** The addresses of a history, of which the last is shown. */
let entries: string[] = [];

beforeEach(() => {
  entries = ["/app/acme/query?q=1"];
  const shown = (): string => entries[entries.length - 1] ?? "";
  vi.stubGlobal("window", {
    location: {
      get pathname() {
        return shown().split("?")[0];
      },
      get search() {
        return shown().slice((shown().split("?")[0] ?? "").length);
      },
    },
    history: {
      state: null,
      pushState: (_: unknown, __: string, href: string) => void entries.push(href),
      replaceState: (_: unknown, __: string, href: string) => void entries.splice(-1, 1, href),
    },
  });
});

test("an address is pushed or replaces the one before", () => {
  navigate("/app/acme", "push");
  navigate("/app/acme?row=a", "replace");
  expect(entries).toEqual(["/app/acme/query?q=1", "/app/acme?row=a"]);
  expect(location.peek()).toBe("/app/acme?row=a");
});

test("a page that stays writes its own address alone", () => {
  navigate("/app/acme/query?q=2", "stay");
  expect(entries).toEqual(["/app/acme/query?q=2"]);
  navigate("/app/acme", "push");
  navigate("/app/acme/query?q=3", "stay");
  expect(entries).toEqual(["/app/acme/query?q=2", "/app/acme"]);
  expect(location.peek()).toBe("/app/acme");
});
