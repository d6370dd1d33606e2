// The ways in which a call fails, and how the server's words become a problem that a person can read.
import type { Problem, WayOut } from "./problem";

/** An answer of the server that is not a success. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null,
    /** Seconds after which the server asks to try again. */
    readonly retryAfter: number | null,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** A call that got no answer. */
export class NoAnswer extends Error {
  constructor() {
    super("The node cannot be reached.");
    this.name = "NoAnswer";
  }
}

/** An answer that does not have the expected form. */
export class UnknownForm extends Error {
  constructor(what: string) {
    super(`The answer of the server has another form than this page expects: ${what}.`);
    this.name = "UnknownForm";
  }
}

/** Cuts the tail that repeats the caller, such as ` [user_email=..] [timestamp=..]`. */
export function withoutTail(message: string): string {
  let text = message.trimEnd();
  while (text.endsWith("]")) {
    const start = text.lastIndexOf("[");
    if (start < 0 || !/^[a-z_]+=/.test(text.slice(start + 1))) break;
    text = text.slice(0, start).trimEnd();
  }
  return text;
}

/** A message as a sentence: the server's start in lower case. What starts with code stays as it is. */
const asSentence = (message: string): string => message.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());

/** Whether a call failed because there is no session. */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401;

/** Whether a read was given up by the page itself. */
export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

function titleOf(status: number): string {
  switch (status) {
    case 401:
      return "You are signed out";
    case 403:
      return "You are not allowed to see this";
    case 404:
      return "This does not exist, or you cannot see it";
    case 429:
      return "Too many requests";
    case 501:
      return "Not served by this version";
    default:
      return status >= 500 ? "The server failed" : "The server refused this";
  }
}

function wayOutOf(status: number): WayOut {
  if (status === 401) return "sign-in";
  return status === 501 ? "none" : "retry";
}

/** Describes a failure. */
export function problemOf(error: unknown, present: number): Problem {
  if (error instanceof ApiError) {
    return {
      title: titleOf(error.status),
      text: asSentence(withoutTail(error.message)),
      code: error.code,
      requestId: error.requestId,
      wayOut: wayOutOf(error.status),
      retryAt: error.retryAfter === null ? null : present + error.retryAfter * 1000,
    };
  }
  const isUnreachable = error instanceof NoAnswer;
  return {
    title: isUnreachable ? "The node does not answer" : "This page failed",
    text: error instanceof Error ? error.message : String(error),
    code: null,
    requestId: null,
    wayOut: "retry",
    retryAt: null,
  };
}
