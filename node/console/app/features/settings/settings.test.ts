// Tests the addresses and the logic of the sections about people.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Group, Role } from "../../api/people";
import { readAddress } from "../../lib/address";
import { readPage } from "../../lib/pages";
import { addressesIn, draftOf, grantedKey, membersOf, roleChange, throughRoles } from "./people";
import { readPeople, writePeople } from "./url";

const texts = fc.string({ unit: "grapheme" }).filter((text) => !/\p{Surrogate}/u.test(text));
const words = texts.filter((text) => text !== "" && text !== "." && text !== "..");

test("an address is read as it was written", () => {
  fc.assert(
    fc.property(words, fc.constantFrom("members", "groups", "roles"), fc.option(words, { nil: "" }), texts, (organization, section, open, filter) => {
      const href = writePeople(organization, section, { open, filter });
      const address = readAddress(href);
      const place = address && readPage(address);
      expect(place?.organization).toBe(organization);
      expect(place?.rest[0]).toBe(section);
      expect(place && readPeople(place)).toEqual({ open, filter });
    }),
  );
});

const group = (id: string, users: readonly string[], groups: readonly string[]): Group => ({
  id,
  name: id,
  description: "",
  users,
  groups,
  isBuiltIn: false,
});

test("a group has its people directly first, then through the groups in it, also in a circle", () => {
  const [outer, inner, deep] = [group("outer", ["ann"], ["inner"]), group("inner", ["ann", "ben"], ["deep"]), group("deep", ["cy"], ["outer"])];
  expect(membersOf(outer, [outer, inner, deep])).toEqual([
    { user: "ann", through: [] },
    { user: "ben", through: ["inner"] },
    { user: "cy", through: ["inner", "deep"] },
  ]);
});

test("addresses are taken apart, and the first word that is none is named", () => {
  expect(addressesIn(" ann@x.y, ben@x.y;\nann@x.y ")).toEqual({ emails: ["ann@x.y", "ben@x.y"], wrong: null });
  expect(addressesIn("ann@x.y ben")).toEqual({ emails: ["ann@x.y"].concat("ben"), wrong: "ben" });
});

const role = (id: string, permissions: readonly string[], roles: readonly string[]): Role => ({
  id,
  name: id.toUpperCase(),
  description: "",
  permissions: permissions.map((permission) => ({ permission, kind: null })),
  roles,
  isBuiltIn: false,
});

test("a role has what the roles in it give, with the name of one of them", () => {
  const [a, b, c] = [role("a", ["read"], []), role("b", ["update"], ["c"]), role("c", ["delete", "update"], ["a"])];
  const through = throughRoles(a, ["b"], [a, b, c]);
  expect(Object.fromEntries(through)).toEqual({ "update ": "B", "delete ": "C" });
});

test("the change of a role is the difference, and changing nothing is none", () => {
  const before = role("a", ["read", "update"], ["b"]);
  expect(roleChange(before, draftOf(before))).toEqual({ added: [], removed: [], addedRoles: [], removedRoles: [] });
  const permissions = new Set([grantedKey({ permission: "read", kind: null }), grantedKey({ permission: "read", kind: "dataset" })]);
  expect(roleChange(before, { permissions, roles: new Set(["c"]) })).toEqual({
    added: [{ permission: "read", kind: "dataset" }],
    removed: [{ permission: "update", kind: null }],
    addedRoles: ["c"],
    removedRoles: ["b"],
  });
});
