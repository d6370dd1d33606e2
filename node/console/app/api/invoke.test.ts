// Tests that answers of invocations are read alike however their bytes are split, and what is sent.
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import {
  gather,
  invoke,
  invokeBody,
  NOTHING_GATHERED,
  readInvokeEvent,
  toolCallsOf,
  valueOf,
  type InvokeEvent,
} from "./invoke";
import { EventReader, type ServerEvent } from "./sse";

afterEach(() => vi.unstubAllGlobals());

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Pieces of bytes, split at some of their places. */
function split(all: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [0, ...places.map((place) => place % (all.length + 1)).sort((a, b) => a - b), all.length];
  return cuts.slice(1).map((cut, index) => all.slice(cuts[index] ?? 0, cut));
}

const read = (pieces: readonly Uint8Array[]): readonly ServerEvent[] => {
  const reader = new EventReader();
  return pieces.flatMap((piece) => reader.take(piece));
};

const line = fc.string({ unit: "binary" }).map((text) => text.replaceAll(/[\r\n\uFEFF]/g, ""));
const event = fc.record({
  name: fc.constantFrom("text_delta", "json_delta", "done"),
  lines: fc.array(line, { minLength: 1, maxLength: 3 }),
});

test("events are the same for any split of their bytes, and any line break", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      fc.constantFrom("\n", "\r\n", "\r"),
      (events, places, end) => {
        const text = events
          .map(({ name, lines }) => [`: ping`, `event: ${name}`, ...lines.map((one) => `data: ${one}`), "", ""].join(end))
          .join("");
        // A carriage return at the very end may be half of a line break, so that another line follows.
        const pieces = split(bytes(`${text}: end${end}`), places);
        expect(read(pieces)).toEqual(events.map(({ name, lines }) => ({ name, data: lines.join("\n") })));
      },
    ),
  );
});

test("an event without data is none, and one without a name is a message", () => {
  expect(read([bytes("event: start\n\ndata\n\ndata:x\n\n")])).toEqual([
    { name: "message", data: "" },
    { name: "message", data: "x" },
  ]);
});

const gathered = (...events: readonly InvokeEvent[]) => events.reduce(gather, NOTHING_GATHERED);

test("text is joined, and JSON counts before text", () => {
  expect(valueOf(gathered({ kind: "text", text: "Hel" }, { kind: "text", text: "lo" }))).toBe("Hello");
  const both = gathered({ kind: "text", text: "x" }, { kind: "json", text: '{"a"' }, { kind: "json", text: ":1}" });
  expect(valueOf(both)).toEqual({ a: 1 });
  expect(valueOf(gathered({ kind: "json", text: '{"a"' }))).toBe('{"a"');
  expect(valueOf(gathered({ kind: "json", text: "null" }))).toBeNull();
});

test("an error is a JSON text, an object with a message, or plain", () => {
  expect(readInvokeEvent({ name: "error", data: '"no"' })).toEqual({ kind: "error", message: "no" });
  expect(readInvokeEvent({ name: "error", data: '{"message":"no"}' })).toEqual({ kind: "error", message: "no" });
  expect(readInvokeEvent({ name: "error", data: "no" })).toEqual({ kind: "error", message: "no" });
  expect(readInvokeEvent({ name: "later", data: "no" })).toBeNull();
});

test("tools that the server runs have a state", () => {
  const progress = (id: string, event: string): InvokeEvent => ({ kind: "progress", id, name: "calc", event, data: "" });
  const all = gathered(progress("1", "start"), progress("2", "start"), progress("1", "done"), progress("2", "error"), progress("2", "done"));
  expect(all.tools.map(({ state }) => state)).toEqual(["done", "failed"]);
});

test("calls of tools are known by their form", () => {
  expect(toolCallsOf([{ id: "a", name: "find", arguments: { q: 1 } }])).toEqual([{ id: "a", name: "find", arguments: { q: 1 } }]);
  for (const value of ["x", [], [{ name: "a" }], [1]]) expect(toolCallsOf(value)).toBeNull();
});

test("a body names the function and leaves out what is absent", () => {
  const body = invokeBody({ what: { kind: "saved", id: "f", version: "7" }, projectId: "p", input: { a: 1 } }, true);
  expect(body).toEqual({ function_id: "f", version: "7", input: { a: 1 }, stream: true });
  const scorer = invokeBody({ what: { kind: "global", name: "ExactMatch" }, projectId: "p", input: null }, false);
  expect(scorer).toEqual({ global_function: "ExactMatch", function_type: "scorer", input: null, stream: false });
});

test("an answer is read as it arrives, and one that breaks off is an error", async () => {
  const mock = vi.fn(async (_path: string, _request: RequestInit) => {
    const text = 'event: start\ndata: \n\nevent: text_delta\ndata: "a"\n\n';
    return new Response(text, { headers: { "x-bt-span-id": "s", "x-bt-cached": "HIT" } });
  });
  vi.stubGlobal("fetch", mock);
  const events: InvokeEvent[] = [];
  const what = { kind: "prompt", prompt: {} } as const;
  for await (const one of invoke("acme", { what, projectId: "p" })) events.push(one);
  expect(events).toMatchObject([
    { kind: "head", head: { spanId: "s", isCached: true, endpoint: null } },
    { kind: "text", text: "a" },
    { kind: "error", message: "The answer ended before it was complete." },
  ]);
  expect(new Headers(mock.mock.calls[0]?.[1].headers).get("x-bt-project-id")).toBe("p");
});
