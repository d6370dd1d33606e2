// Tests how key presses become commands.
import { expect, test } from "vitest";
import { isHeld, keyCaps, step, tokenOf, type Press } from "./keys";

const press = (key: string, held: Partial<Press> = {}): Press => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  altGraph: false,
  ...held,
});

test.each([
  [press("g"), "g"],
  [press("?", { shiftKey: true }), "?"],
  [press("Z", { shiftKey: true }), "Z"],
  [press("k", { ctrlKey: true }), "mod+k"],
  [press("K", { metaKey: true, shiftKey: true }), "mod+k"],
  [press("[", { ctrlKey: true, altKey: true, altGraph: true }), "["],
  [press("[", { altKey: true }), "["],
  [press("ArrowDown", { shiftKey: true }), "shift+ArrowDown"],
  [press("g", { altKey: true }), null],
  [press("ArrowLeft", { altKey: true }), null],
  [press("Shift", { shiftKey: true }), null],
  [press("Dead"), null],
])("%j is %s", (pressed, token) => {
  expect(tokenOf(pressed)).toBe(token);
});

const SEQUENCES = ["g h", "g l", "n", "mod+k"];

test("a sequence is complete with its last key", () => {
  const first = step([], "g", SEQUENCES);
  expect(first).toEqual({ complete: null, pending: ["g"] });
  expect(step(first.pending, "h", SEQUENCES)).toEqual({ complete: "g h", pending: [] });
});

test("a key that continues nothing starts anew", () => {
  expect(step(["g"], "n", SEQUENCES)).toEqual({ complete: "n", pending: [] });
  expect(step(["g"], "g", SEQUENCES)).toEqual({ complete: null, pending: ["g"] });
  expect(step(["g"], "x", SEQUENCES)).toEqual({ complete: null, pending: [] });
});

test("only keys with ctrl or cmd are held", () => {
  expect(isHeld("mod+k")).toBe(true);
  expect(isHeld("g h")).toBe(false);
});

test("caps name the keys of the system", () => {
  expect(keyCaps("mod+k", true)).toEqual(["⌘", "K"]);
  expect(keyCaps("mod+k", false)).toEqual(["Ctrl", "K"]);
  expect(keyCaps("g h", false)).toEqual(["g", "h"]);
  expect(keyCaps("Z", false)).toEqual(["Shift", "z"]);
});
