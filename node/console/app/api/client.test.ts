// Tests what a call sends, how it fails, and how it goes on after a new sign-in.
import { afterEach, expect, test, vi } from "vitest";
import { call } from "./client";
import { ApiError, NoAnswer } from "../lib/errors";
import { answerGate, armGate, disarmGate, isSignInAsked } from "./gate";
import { isCutOff, lastCall } from "./reads";

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(body === null ? null : JSON.stringify(body), { status, headers });

/** Answers calls one after the other. A function throws in the place of an answer. */
function serve(...answers: readonly (Response | Error)[]) {
  const waiting = [...answers];
  const mock = vi.fn(async (_path: string, _request: RequestInit): Promise<Response> => {
    const next = waiting.shift();
    if (next === undefined) throw new Error("one call too many");
    if (next instanceof Error) throw next;
    return next;
  });
  vi.stubGlobal("fetch", mock);
  return mock;
}

const REFUSED = { Code: "UnauthorizedError", Message: "no session", InternalTraceId: "r" };

afterEach(() => {
  vi.unstubAllGlobals();
  disarmGate();
});

test("every call carries the console's header, and the organization as bytes of UTF-8", async () => {
  const mock = serve(answer(200, { a: 1 }, { "x-bt-internal-trace-id": "r1" }));
  expect(await call("GET", "/console/projects", { organization: "協会" })).toEqual({ a: 1 });
  const request = mock.mock.calls[0]?.[1];
  const headers = new Headers(request?.headers);
  expect(headers.get("x-assay-console")).toBe("1");
  expect(headers.get("authorization")).toBeNull();
  expect(Buffer.from(headers.get("x-bt-org-name") ?? "", "latin1").toString("utf8")).toBe("協会");
  expect(request?.credentials).toBe("same-origin");
  expect(lastCall.value?.requestId).toBe("r1");
});

test("a read without an answer is tried once more, a write is not", async () => {
  const read = serve(new TypeError("failed"), answer(200, {}));
  await call("GET", "/console/about");
  expect(read).toHaveBeenCalledTimes(2);
  const write = serve(new TypeError("failed"));
  await expect(call("POST", "/v1/project", { body: {} })).rejects.toThrow(NoAnswer);
  expect(write).toHaveBeenCalledTimes(1);
  expect(isCutOff.value).toBe(true);
});

test("a failure has the server's words, or says that there are none", async () => {
  serve(answer(503, { Code: "X", Message: "busy" }, { "retry-after": "7" }));
  await expect(call("GET", "/a")).rejects.toMatchObject({ status: 503, code: "X", message: "busy", retryAfter: 7 });
  vi.stubGlobal("fetch", async () => new Response("<html>", { status: 502 }));
  await expect(call("GET", "/a")).rejects.toMatchObject({ status: 502, code: "HTTP 502" });
});

test("an answer without a body is null", async () => {
  serve(new Response(null, { status: 204 }));
  expect(await call("DELETE", "/console/session")).toBeNull();
});

test("without a session before, an answer 401 is a failure", async () => {
  serve(answer(401, REFUSED));
  await expect(call("GET", "/a")).rejects.toThrow(ApiError);
  expect(isSignInAsked.value).toBe(false);
});

test("a session that ended asks once for a sign-in, and the calls are repeated", async () => {
  armGate();
  const mock = serve(answer(401, REFUSED), answer(401, REFUSED), answer(200, 1), answer(200, 2));
  const both = Promise.all([call("GET", "/a"), call("POST", "/b", { body: {} })]);
  await vi.waitFor(() => expect(mock).toHaveBeenCalledTimes(2));
  await vi.waitFor(() => expect(isSignInAsked.value).toBe(true));
  answerGate(true);
  expect(await both).toEqual([1, 2]);
  expect(isSignInAsked.value).toBe(false);
});

test("a dismissed dialog lets the call fail and does not come back", async () => {
  armGate();
  serve(answer(401, REFUSED), answer(401, REFUSED));
  const first = call("GET", "/a");
  await vi.waitFor(() => expect(isSignInAsked.value).toBe(true));
  answerGate(false);
  await expect(first).rejects.toMatchObject({ status: 401 });
  await expect(call("GET", "/a")).rejects.toMatchObject({ status: 401 });
  expect(isSignInAsked.value).toBe(false);
});
