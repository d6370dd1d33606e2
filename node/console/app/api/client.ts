// The one place that calls the server.
import { signal as shared } from "@preact/signals";
import { ApiError, isAbort, NoAnswer } from "../lib/errors";
import { parseJson, printJson } from "../lib/json";
import { passGate } from "./gate";
import { isCutOff, lastCall } from "./reads";
import { isRecord } from "./narrow";

export interface CallOptions {
  /** The name of the organization that the call is about: the one of the page's path. */
  readonly organization?: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
  /** A key to sign in with; other calls carry the session's cookie. */
  readonly key?: string;
  /** Whether numbers that JavaScript cannot hold keep their digits, as `Exact`, in the body and in the answer. */
  readonly isExact?: boolean;
  /** Whether an answer 401 is given back at once, without the dialog that signs in. */
  readonly isWithoutGate?: boolean;
  /** Headers beside those of every call. */
  readonly headers?: Readonly<Record<string, string>>;
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

const RETRY_MS = 400;

/** Somebody as whom an owner looks at the console. It ends with the page: nothing keeps it. */
export interface SeenAs {
  readonly id: string;
  readonly name: string;
}

export const seenAs = shared<SeenAs | null>(null);

/** The calls besides GET that change nothing, and the end of the own session. */
const LOOKS = /^\/(?:btql|console\/(?:session|parse|compare|download))|\/(?:fetch|preview|summarize)$/;

/** Refuses to change something in the name of somebody else. */
function refuseChange(method: Method, path: string): void {
  const seen = seenAs.peek();
  if (seen === null || method === "GET" || LOOKS.test(path)) return;
  throw new ApiError(403, "SeenAs", `Nothing is changed while you see what ${seen.name} sees.`, null, null);
}

/** A header holds bytes, so that a name travels as its bytes of UTF-8. */
const headerText = (text: string): string => String.fromCharCode(...new TextEncoder().encode(text));

function requestOf(method: Method, options: CallOptions): RequestInit {
  const headers = new Headers({ "x-assay-console": "1", accept: "application/json", ...options.headers });
  if (options.organization !== undefined) headers.set("x-bt-org-name", headerText(options.organization));
  if (options.key !== undefined) headers.set("authorization", `Bearer ${headerText(options.key)}`);
  if (options.body !== undefined) headers.set("content-type", "application/json");
  if (seenAs.peek() !== null && options.key === undefined && method !== "DELETE") headers.set("x-bt-impersonate-user", seenAs.peek()?.id ?? "");
  return {
    method,
    headers,
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
    body: options.body === undefined ? null : options.isExact === true ? printJson(options.body, 0) : JSON.stringify(options.body),
    signal: options.signal ?? null,
  };
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/** Fetches, once more if a read got no answer. A write is never repeated: it may have been carried out. */
async function fetched(method: Method, path: string, options: CallOptions): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(path, requestOf(method, options));
      isCutOff.value = false;
      return response;
    } catch (error) {
      if (isAbort(error) || options.signal?.aborted === true) throw error;
      if (method !== "GET" || attempt > 1) {
        isCutOff.value = true;
        throw new NoAnswer();
      }
      await pause(RETRY_MS);
    }
  }
}

async function bodyOf(response: Response, isExact: boolean): Promise<unknown> {
  const text = await response.text();
  if (text === "") return null;
  try {
    return isExact ? parseJson(text) : JSON.parse(text);
  } catch {
    return null;
  }
}

function secondsOf(header: string | null): number | null {
  const seconds = Number(header);
  return header === null || !Number.isFinite(seconds) || seconds < 0 ? null : seconds;
}

function failureOf(response: Response, body: unknown): ApiError {
  const fields = isRecord(body) ? body : {};
  const inner = isRecord(fields["error"]) ? fields["error"] : {};
  const code = fields["Code"] ?? inner["code"];
  const message = fields["Message"] ?? inner["message"];
  return new ApiError(
    response.status,
    typeof code === "string" ? code : `HTTP ${response.status}`,
    typeof message === "string" ? message : "The answer has no message that this page can read.",
    response.headers.get("x-bt-internal-trace-id"),
    secondsOf(response.headers.get("retry-after")),
  );
}

/** Calls the server and returns what is read from a success. */
async function answered<Kind>(
  method: Method,
  path: string,
  options: CallOptions,
  read: (response: Response) => Promise<Kind>,
): Promise<Kind> {
  refuseChange(method, path);
  const started = performance.now();
  const response = await fetched(method, path, options);
  const result = response.ok ? { value: await read(response) } : failureOf(response, await bodyOf(response, false));
  lastCall.value = {
    at: new Date(),
    milliseconds: performance.now() - started,
    requestId: response.headers.get("x-bt-internal-trace-id"),
  };
  if (!(result instanceof ApiError)) return result.value;
  if (response.status === 401 && options.isWithoutGate !== true && (await passGate())) {
    return answered(method, path, { ...options, isWithoutGate: true }, read);
  }
  throw result;
}

/** Calls the server and returns the body of a success, whose form the caller checks. */
export const call = (method: Method, path: string, options: CallOptions = {}): Promise<unknown> =>
  answered<unknown>(method, path, options, (response) => bodyOf(response, options.isExact === true));

/** Calls the server and returns a success whose body the caller reads, such as a stream. */
export const send = (method: Method, path: string, options: CallOptions = {}): Promise<Response> =>
  answered(method, path, options, async (response) => response);
