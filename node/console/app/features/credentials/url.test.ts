// Tests that the address of a section says all of its state.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readAddress } from "../../lib/address";
import { readPage } from "../../lib/pages";
import { credentialsAddress, readCredentialsState } from "./url";

test("an address is read as it was written", () => {
  const text = fc.string({ minLength: 1, unit: "grapheme" });
  const states = fc.record({ organization: text, section: fc.constantFrom("keys", "tokens", "secrets", "env"), filter: fc.oneof(text, fc.constant("")) });
  fc.assert(
    fc.property(states, (state) => {
      const address = readAddress(credentialsAddress(state));
      const place = address === null ? null : readPage(address);
      expect(place === null ? null : readCredentialsState(place)).toEqual(state);
    }),
  );
});
