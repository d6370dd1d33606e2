// Tests the address that names an object by its type and id.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readAddress } from "../../lib/address";
import { isKnownType } from "./queries";
import { objectUrl } from "./url";

test("the address of an object says its type, its id and the row", () => {
  const text = fc.string({ unit: "grapheme" });
  fc.assert(
    fc.property(text.filter((drawn) => drawn !== ""), text, text, text, (organization, type, objectId, row) => {
      const state = { organization, type, objectId, row };
      const address = readAddress(objectUrl.write(state));
      expect(address && objectUrl.read(address)).toEqual(state);
    }),
  );
});

test("an address that SDKs print is read", () => {
  const address = readAddress("/app/acme/object?object_type=project_logs&object_id=p1&id=r1");
  expect(address && objectUrl.read(address)).toEqual({ organization: "acme", type: "project_logs", objectId: "p1", row: "r1" });
});

test.each([["project_logs", true], ["experiment", true], ["toString", false], ["", false]])("the type %j is known: %s", (type, isKnown) => {
  expect(isKnownType(type)).toBe(isKnown);
});
