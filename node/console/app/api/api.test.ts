// Tests how answers of the server are read, and what people are told of failures.
import { expect, test } from "vitest";
import { ApiError, NoAnswer, problemOf, UnknownForm, withoutTail } from "../lib/errors";
import { personName, readAbout, readProjects, readSession } from "./schema";

test.each([
  ["no such project [user_email=a@b.test] [user_org=acme] [timestamp=1.5]", "no such project"],
  ["expected one of [a, b]", "expected one of [a, b]"],
  ["expected [a=1] here", "expected [a=1] here"],
  ["plain", "plain"],
  ["]", "]"],
  ["[timestamp=1]", ""],
])("the tail of %j is cut", (message, expected) => {
  expect(withoutTail(message)).toBe(expected);
});

test("a failure names its code, its request and when to try again", () => {
  const problem = problemOf(new ApiError(429, "TooManyRequestsError", "Slow down. [timestamp=1]", "r1", 12), 1000);
  expect(problem).toEqual({
    title: "Too many requests",
    text: "Slow down.",
    code: "TooManyRequestsError",
    requestId: "r1",
    wayOut: "retry",
    retryAt: 13_000,
  });
});

test.each([
  [401, "sign-in"],
  [403, "retry"],
  [404, "retry"],
  [500, "retry"],
  [501, "none"],
])("after %s the way out is %s", (status, wayOut) => {
  expect(problemOf(new ApiError(status, "X", "x", null, null), 0).wayOut).toBe(wayOut);
});

test("other failures are told in words as well", () => {
  expect(problemOf(new NoAnswer(), 0).title).toBe("The node does not answer");
  expect(problemOf("odd", 0).text).toBe("odd");
});

test.each([
  ["no leader is known", "No leader is known"],
  ["rows[0].id is missing", "rows[0].id is missing"],
  ["Slow down.", "Slow down."],
])("the message %j is told as a sentence", (message, expected) => {
  expect(problemOf(new ApiError(500, "X", message, null, null), 0).text).toBe(expected);
});

const ABOUT = {
  version: "0.6.0",
  node: null,
  cluster: "9f2c8a10",
  served: ["signin", "home", 7],
  sign_in: { key: true, oidc: { issuer: "login.test" } },
  first_key: null,
  has_rows: null,
  secure: true,
  limits: { body_bytes: 1, rows: 1 },
};

test("what the server says of itself is read", () => {
  expect(readAbout(ABOUT)).toEqual({
    version: "0.6.0",
    node: null,
    cluster: "9f2c8a10",
    served: ["signin", "home"],
    issuer: "login.test",
    firstKey: null,
    hasRows: null,
    isSecure: true,
  });
  expect(readAbout({ ...ABOUT, sign_in: { key: true, oidc: null }, has_rows: true })).toMatchObject({
    issuer: null,
    hasRows: true,
  });
});

test.each([null, [], "x", {}, { ...ABOUT, version: 1 }, { ...ABOUT, sign_in: null }])("%j is refused", (value) => {
  expect(() => readAbout(value)).toThrow(UnknownForm);
});

test("a session and its person are read", () => {
  const user = { id: "u", email: "ann@acme.test", given_name: "Ann", family_name: null };
  const session = readSession({ user, organizations: [{ id: "o", name: "acme" }], by: "key" });
  expect(session.organizations).toEqual([{ id: "o", name: "acme" }]);
  expect(personName(session.user)).toBe("Ann");
  expect(personName({ ...session.user, givenName: null })).toBe("ann@acme.test");
  expect(personName({ ...session.user, givenName: null, email: null })).toBe("u");
});

test("projects are read, and whether there are more", () => {
  const project = { id: "p", name: "bot", newest: null, rows_24h: 3, errors_24h: 0 };
  expect(readProjects({ projects: [project], truncated: true })).toEqual({
    projects: [{ id: "p", name: "bot", newest: null, rows: 3, errors: 0 }],
    isTruncated: true,
  });
  expect(readProjects({ projects: [] }).isTruncated).toBe(false);
  expect(() => readProjects({ projects: [{ ...project, rows_24h: "3" }] })).toThrow(UnknownForm);
});
