// Tests that a playground's address says all of its state.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readAddress } from "../../lib/address";
import { readPage } from "../../lib/pages";
import { playgroundDefaults, readPlace, writePlace } from "./url";

const name = fc.string({ minLength: 1, maxLength: 8 });

test("a state is the same after it was an address", () => {
  const text = fc.string({ maxLength: 8 });
  const state = fc.record({
    organization: name,
    project: name,
    id: text,
    variant: text,
    row: text,
    isDiff: fc.boolean(),
    span: text,
    root: text,
    experiment: text,
  });
  fc.assert(
    fc.property(state, (one) => {
      const address = readAddress(writePlace(one));
      const place = address === null ? null : readPage(address);
      expect(place?.page.id).toBe("playgrounds");
      expect(place === null ? null : readPlace(place)).toEqual(one);
    }),
  );
});

test("defaults are not written, and there is nothing below a playground", () => {
  expect(writePlace(playgroundDefaults("acme", "demo"))).toBe("/app/acme/p/demo/playgrounds");
  const address = readAddress("/app/acme/p/demo/playgrounds/a/b");
  const place = address === null ? null : readPage(address);
  expect(place === null ? undefined : readPlace(place)).toBeNull();
});
