// Tests of the editor's pure parts.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linesOf, type Line, type LinePart } from "./EditorLines";
import { broken, deleted, fit, fitting, isPressed, typed } from "./EditorTyping";
import type { EditorToken } from "./EditorTypes";

const part = (text: string, kind: LinePart["kind"], severity: LinePart["severity"] = null): LinePart => ({
  text,
  kind,
  severity,
  message: "",
});

const textOf = (lines: readonly Line[]): string =>
  lines.map(({ parts }) => parts.map(({ text }) => text).join("")).join("\n");

const spans = fc.array(fc.tuple(fc.nat(60), fc.nat(12)), { maxLength: 8 }).map((pairs) => {
  let end = 0;
  return pairs.map(([gap, length]): EditorToken => {
    const from = end + gap;
    end = from + length;
    return { from, to: end, kind: "name" };
  });
});

describe("lines", () => {
  it("hold the whole text, whatever is drawn over it", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 80 }), spans, spans, (text, tokens, marked) => {
        const marks = marked.map(({ from, to }) => ({ from, to, severity: "error" as const, message: "" }));
        expect(textOf(linesOf(text, { tokens, marks, hints: [] }))).toBe(text);
      }),
    );
  });

  it("cut tokens and marks at the ends of lines", () => {
    const tokens: EditorToken[] = [{ from: 0, to: 5, kind: "string" }];
    const marks = [{ from: 4, to: 7, severity: "warning" as const, message: "" }];
    const hints = [{ at: 8, text: "demo" }];
    expect(linesOf("ab\ncdefg", { tokens, marks, hints })).toEqual([
      { parts: [part("ab", "string")], hints: [] },
      {
        parts: [part("c", "string"), part("d", "string", "warning"), part("ef", null, "warning"), part("g", null)],
        hints: ["demo"],
      },
    ]);
  });

  it("show a mark without extent on the character before it", () => {
    const [line] = linesOf("ab", { tokens: [], marks: [{ from: 2, to: 2, severity: "error", message: "" }], hints: [] });
    expect(line?.parts).toEqual([part("a", null), part("b", null, "error")]);
  });
});

describe("typing", () => {
  it("closes brackets and quotes, and types over a closer", () => {
    expect(typed("a ", 2, 2, "(")).toEqual({ from: 2, to: 2, insert: "()", select: [3, 3] });
    expect(typed("()", 1, 1, ")")).toEqual({ from: 1, to: 2, insert: ")", select: [2, 2] });
    expect(typed("abc", 0, 3, "'")).toEqual({ from: 0, to: 3, insert: "'abc'", select: [1, 4] });
    expect(typed("don", 3, 3, "'")).toBeNull();
    expect(typed("abc", 0, 0, "(")).toBeNull();
    expect(typed("a", 1, 1, "x")).toBeNull();
  });

  it("deletes an empty pair as a whole, and keeps the indentation of a line", () => {
    expect(deleted("f()", 2)).toEqual({ from: 1, to: 3, insert: "", select: [1, 1] });
    expect(deleted("f(x)", 3)).toBeNull();
    expect(broken("  ab", 4, 4)).toEqual({ from: 4, to: 4, insert: "\n  ", select: [7, 7] });
  });

  it("knows keys by their written form", () => {
    const event = { key: "Enter", ctrlKey: true, metaKey: false, altKey: false, shiftKey: false };
    expect(isPressed("Mod-Enter", event, false)).toBe(true);
    expect(isPressed("Mod-Enter", event, true)).toBe(false);
    expect(isPressed("Enter", event, false)).toBe(false);
    expect(isPressed("Alt-ArrowUp", { ...event, key: "ArrowUp", ctrlKey: false, altKey: true }, false)).toBe(true);
  });
});

describe("options", () => {
  it("come in the order of their fit, then of their weight", () => {
    const options = ["root_span_id", "span_id", "Span", "created"].map((label) => ({ label, kind: "name" as const }));
    expect(fitting(options, "span").map(({ label }) => label)).toEqual(["span_id", "Span", "root_span_id"]);
    expect(fitting([...options, { label: "spans", kind: "name", boost: 2 }], "span")[0]?.label).toBe("spans");
    expect(fit("root_span_id", "rsi")).toBe(4);
    expect(fit("created", "x")).toBeNull();
  });
});
