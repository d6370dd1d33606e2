// Tests how rows are followed: by a stream, by asking where the server refuses one, and not in hidden tabs.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { follow } from "./tail";

const followed = { organization: "acme", kind: "project_logs", id: "p", filter: "" } as const;

let seen = "visible";
let onSeen: () => void = () => undefined;

beforeEach(() => {
  seen = "visible";
  vi.useFakeTimers();
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("document", {
    get visibilityState() {
      return seen;
    },
    addEventListener: (_: string, run: () => void) => {
      onSeen = run;
    },
    removeEventListener: () => undefined,
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** An answer that goes on until it is given up. */
function streamOf(text: string): Response {
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(bytes) });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const refusal = (status: number): Response => new Response(JSON.stringify({ Code: "X", Message: "no" }), { status });

function started(answers: readonly Response[], last = "5") {
  const left = [...answers];
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (path: string) => {
    asked.push(path);
    return left.shift() ?? streamOf("event: start\ndata: {}\n\n");
  });
  const read = vi.fn(async () => undefined);
  const control = new AbortController();
  follow(followed, { last: () => last, read }, control.signal);
  return { asked, read, end: () => control.abort() };
}

test("events of rows are read, after the last transaction", async () => {
  const rows = 'event: rows\ndata: {"after":"7","rows":[]}\n\n';
  const { asked, read, end } = started([streamOf(`event: start\ndata: {"after":"5"}\n\n: still here\n\n${rows}${rows}`)]);
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toEqual(["/v1/project_logs/p/tail?after=5"]);
  expect(read).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(2000);
  expect(read.mock.calls.length).toBeLessThanOrEqual(2);
  end();
});

test.each([429, 501, 403])("where the server answers %d, it is asked, and a stream is tried again later", async (status) => {
  const { asked, read, end } = started([refusal(status)]);
  await vi.advanceTimersByTimeAsync(4100);
  expect(asked).toHaveLength(1);
  expect(read).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(2);
  end();
});

test("a stream that is cut off is opened again, later each time", async () => {
  const { asked, read, end } = started([refusal(503), refusal(503), refusal(503)]);
  await vi.advanceTimersByTimeAsync(500);
  expect(asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toHaveLength(4);
  expect(read).not.toHaveBeenCalled();
  end();
});

test("an end that the server asks for is followed by another stream at once", async () => {
  const { asked, end } = started([streamOf('event: end\ndata: {"after":"5"}\n\n')]);
  await vi.advanceTimersByTimeAsync(10);
  expect(asked).toHaveLength(2);
  end();
});

test("nothing is followed in a hidden tab", async () => {
  const { asked, end } = started([]);
  await vi.advanceTimersByTimeAsync(10);
  seen = "hidden";
  onSeen();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(asked).toHaveLength(1);
  seen = "visible";
  onSeen();
  await vi.advanceTimersByTimeAsync(10);
  expect(asked).toHaveLength(2);
  end();
});
