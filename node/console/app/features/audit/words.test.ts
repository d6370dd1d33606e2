// Tests how entries and faults are told.
import { expect, test } from "vitest";
import { readAuditEntry } from "../../api/audit";
import { actionWords, actorWords, changeWords, faultWords, faultyEntry, kindWords, objectWords } from "./words";

const NAMES = new Map([
  ["p1", "demo"],
  ["u1", "Ann"],
  ["r1", "Reviewer"],
]);

const entry = (fields: Readonly<Record<string, unknown>>) => readAuditEntry({ sequence: 1, action: "update", ...fields });

test("a grant is told with the names of what it is about", () => {
  const grant = { object_type: "project", object_id: "p1", user_id: "u1", permission: "read" };
  expect(changeWords(entry({ object_type: "acl", details: { before: null, after: grant } }), NAMES)).toBe("read on project demo for Ann");
  const byRole = { object_type: "organization", object_id: "o", group_id: "g", role_id: "r1", restrict_object_type: "org_member" };
  expect(changeWords(entry({ object_type: "acl", details: { before: byRole, after: null } }), NAMES)).toBe(
    "role Reviewer on organization o, member only for group g",
  );
});

test("a change is told by its fields", () => {
  const details = { before: { name: "a", member_users: [1] }, after: { name: "b", member_users: [1], description: "x" } };
  expect(changeWords(entry({ object_type: "group", details }), NAMES)).toBe("name, description");
  expect(changeWords(entry({ details: { changed: ["secret_updated_at"] } }), NAMES)).toBe("secret updated at");
  expect(changeWords(entry({ details: null }), NAMES)).toBe("");
});

test("actors, kinds and objects have names", () => {
  expect(actorWords({ type: "user", userId: "u1", email: "a@x" }, NAMES)).toBe("Ann");
  expect(actorWords({ type: "user", userId: "u2", email: "b@x" }, NAMES)).toBe("b@x");
  expect(actorWords({ type: "operator", userId: null, email: null }, NAMES)).toBe("Operator");
  expect([actionWords("create"), actionWords("console_sign_in"), kindWords("acl"), kindWords("project_group")]).toEqual([
    "Created",
    "Console sign in",
    "grant",
    "project group",
  ]);
  expect(objectWords(entry({ object_name: null, object_id: "p1" }), NAMES)).toBe("demo");
});

test("faults name their entry", () => {
  expect(faultWords({ kind: "changed", sequence: 7, found: 7 })).toBe("Entry #7 was changed after it was written.");
  expect(faultWords({ kind: "missing", sequence: 2, found: 3 })).toBe("Entry #2 is missing: #3 stands in its place.");
  expect(faultyEntry({ kind: "cut", sequence: 3, found: null })).toBe(2);
});
