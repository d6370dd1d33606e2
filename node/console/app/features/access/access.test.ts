// Tests the address, the matrix and the words of the section about access.
import fc from "fast-check";
import { expect, test } from "vitest";
import { KINDS, type Explanation, type Grant, type Way } from "../../api/access";
import type { Group, Member, Role } from "../../api/people";
import { readAddress } from "../../lib/address";
import { readPage } from "../../lib/pages";
import { chainsOf, changesOf, giftKey, giftOf, giftsTo, holdOf, subjectsOf } from "./rows";
import { readAccess, writeAccess } from "./url";
import { chainSteps, changeWords, objectWords, originWords } from "./words";

const texts = fc.string({ unit: "grapheme" }).filter((text) => !/\p{Surrogate}/u.test(text));

test("an address is read as it was written", () => {
  const states = fc.record({
    by: fc.constantFrom("object" as const, "person" as const),
    kind: fc.constantFrom(...KINDS.map(([kind]) => kind)),
    id: texts,
    project: texts,
    user: texts,
    who: texts,
  });
  fc.assert(
    fc.property(states, (state) => {
      const address = readAddress(writeAccess("acme", state));
      const place = address && readPage(address);
      expect(place && readAccess(place)).toEqual(state);
    }),
  );
});

const PROJECT = { kind: "project", id: "P" };
const ORGANIZATION = { kind: "organization", id: "O" };

const way = (changed: Partial<Way>): Way => ({
  permission: "read",
  restrict: null,
  on: PROJECT,
  isInherited: false,
  isInside: false,
  groups: [],
  roles: [],
  grant: "g1",
  ...changed,
});

const member = (id: string): Member => ({ id, name: id, email: `${id}@x.y`, isService: false, created: null });
const group = (id: string): Group => ({ id, name: id, description: "", users: [], groups: [], isBuiltIn: false });
const grant = (changed: Partial<Grant>): Grant => ({ id: "g1", user: null, group: null, permission: null, restrict: null, role: null, ...changed });

const REVIEWER: Role = {
  id: "R",
  name: "Reviewer",
  description: "",
  permissions: [{ permission: "update", kind: "experiment" }],
  roles: ["V"],
  isBuiltIn: false,
};
const VIEWER: Role = { ...REVIEWER, id: "V", name: "Viewer", permissions: [{ permission: "read", kind: "org_project" }], roles: ["R"] };

const known = { groups: [group("team"), group("empty")], roles: [REVIEWER, VIEWER], members: [member("ann"), member("ben")] };
const nobody: Explanation = { people: [], isTruncated: false, isOwnOnly: false };

test("a permission that is granted here wins over one that is inherited", () => {
  expect(holdOf([way({ isInherited: true, on: ORGANIZATION }), way({})], "read")).toBe("here");
  expect(holdOf([way({ isInherited: true, on: ORGANIZATION })], "read")).toBe("inherited");
  expect(holdOf([way({})], "update")).toBe("none");
  expect(holdOf([way({ isInside: true })], "read")).toBe("none");
});

test("groups on the way of a person have a row, and come before people", () => {
  const through = [{ id: "team", name: "team" }, { id: "all", name: "all" }];
  const people = [{ user: member("ben"), ways: [way({ groups: through })] }];
  const subjects = subjectsOf({ ...nobody, people }, [], PROJECT, known);
  expect(subjects.map(({ name, isGroup }) => [name, isGroup])).toEqual([["all", true], ["team", true], ["ben", false]]);
  expect(subjects[1]?.ways[0]?.groups.map(({ name }) => name)).toEqual(["all"]);
});

test("a group without people has a row for what is granted to it, through nested roles that form a circle", () => {
  const subjects = subjectsOf(nobody, [grant({ group: "empty", role: "R" })], PROJECT, known);
  expect(subjects.map(({ name }) => name)).toEqual(["empty"]);
  expect(holdOf(subjects[0]?.ways ?? [], "read")).toBe("here");
  expect(holdOf(subjects[0]?.ways ?? [], "update")).toBe("none");
  expect(subjects[0]?.ways.map(({ permission, isInside }) => [permission, isInside])).toEqual([["update", true], ["read", false]]);
});

test("a grant that the explanation has already is not counted twice", () => {
  const people = [{ user: member("ben"), ways: [way({})] }];
  const subjects = subjectsOf({ ...nobody, people }, [grant({ user: "ben", permission: "read" })], PROJECT, known);
  expect(subjects).toHaveLength(1);
  expect(subjects[0]?.ways).toHaveLength(1);
});

test("a chain is told in words, from the permission to the object", () => {
  const chains = chainsOf([
    way({ permission: "create", isInherited: true, on: ORGANIZATION, groups: [{ id: "t", name: "team" }, { id: "a", name: "all" }], roles: [{ id: "R", name: "Reviewer" }] }),
    way({ permission: "read_acls", isInherited: true, on: ORGANIZATION, groups: [{ id: "t", name: "team" }, { id: "a", name: "all" }], roles: [{ id: "R", name: "Reviewer" }] }),
    way({ restrict: "dataset", grant: "g2" }),
  ]);
  const nameOf = (id: string): string => ({ O: "acme", P: "demo" })[id] ?? id;
  expect(chains.map((chain) => chainSteps(chain, nameOf).join(" – "))).toEqual([
    "read (dataset only) – project demo",
    "create, read grants – group team – group all – role Reviewer – organization acme",
  ]);
  expect(objectWords({ kind: "org_member", id: "O" }, nameOf)).toBe("members");
  expect(originWords({ by: "bob@x.y", at: "then" }, () => "3 May")).toBe("by bob@x.y, 3 May");
  expect(originWords({ by: null, at: "then" }, () => "3 May")).toBe("since 3 May");
  expect(originWords(undefined, () => "")).toBe("");
});

test("keys of gifts are read as they were written", () => {
  const gifts = fc.oneof(
    fc.record({ permission: fc.constantFrom("read", "create_acls"), restrict: fc.constantFrom(null, "dataset"), role: fc.constant(null) }),
    fc.record({ permission: fc.constant(null), restrict: fc.constant(null), role: fc.uuid() }),
  );
  fc.assert(fc.property(gifts, (gift) => void expect(giftOf(giftKey(gift))).toEqual(gift)));
});

test("a change is the difference of what is granted here, in words", () => {
  const grants = [grant({ user: "ben", permission: "read" }), grant({ user: "ben", role: "R" }), grant({ user: "ann", permission: "delete" })];
  const ben = { id: "ben", isGroup: false };
  const before = giftsTo(ben, grants);
  const after = new Set([giftKey({ permission: "update", restrict: "dataset", role: null }), giftKey({ permission: null, restrict: null, role: "R" })]);
  const changes = changesOf(ben, before, after);
  const nameOf = (id: string): string => (id === "R" ? "Reviewer" : id);
  expect(changes.map((change) => `${change.isAdded ? "+" : "-"} ${changeWords(change, nameOf)}`)).toEqual([
    "- ben: read",
    "+ ben: update (dataset only)",
  ]);
  expect(changesOf(ben, before, before)).toEqual([]);
});
