// Tests that the address of the audit log says all of its state.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readAddress } from "../../lib/address";
import { readPage } from "../../lib/pages";
import { auditAddress, readAuditState, type AuditState } from "./url";

const states: fc.Arbitrary<AuditState> = fc.record({
  organization: fc.string({ minLength: 1, unit: "grapheme" }),
  who: fc.string({ unit: "grapheme" }),
  action: fc.string(),
  kind: fc.string(),
  object: fc.string({ unit: "grapheme" }),
  range: fc.constantFrom("all", "24h", "2026-05-04T10:00Z..2026-05-04T12:00Z"),
  entry: fc.nat(),
});

test("an address is read as it was written", () => {
  fc.assert(
    fc.property(states, (state) => {
      const address = readAddress(auditAddress(state));
      const place = address === null ? null : readPage(address);
      expect(place?.rest).toEqual(["audit"]);
      expect(place === null ? null : readAuditState(place)).toEqual(state);
    }),
  );
});

test("what is no range and no number counts as absent", () => {
  const query = new URLSearchParams("t=yesterday&r=-1");
  expect(readAuditState({ organization: "o", query })).toMatchObject({ range: "all", entry: 0 });
});
