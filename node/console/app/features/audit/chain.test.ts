// Tests the hash function against known results, and that a chain tells every change of an entry.
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson, printJson } from "../../lib/json";
import { deriver } from "./blake3";
import { beforeOf, BEGINNING, faultOfEnd, hashOf, readSeal, sealText, verified, type Entry } from "./chain";

/** The first 32 bytes that the authors of BLAKE3 publish for texts of some lengths. */
const VECTORS: readonly (readonly [number, string])[] = [
  [0, "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d"],
  [1, "b3e2e340a117a499c6cf2398a19ee0d29cca2bb7404c73063382693bf66cb06c"],
  [1023, "74a16c1c3d44368a86e1ca6df64be6a2f64cce8f09220787450722d85725dea5"],
  [1024, "7356cd7720d5b66b6d0697eb3177d9f8d73a4a5c5e968896eb6a689684302706"],
  [1025, "effaa245f065fbf82ac186839a249707c3bddf6d3fdda22d1b95a3c970379bcb"],
  [2048, "7b2945cb4fef70885cc5d78a87bf6f6207dd901ff239201351ffac04e1088a23"],
  [2049, "2ea477c5515cc3dd606512ee72bb3e0e758cfae7232826f35fb98ca1bcbdf273"],
  [3073, "72613c9ec9ff7e40f8f5c173784c532ad852e827dba2bf85b2ab4b76f7079081"],
  [5121, "b07f01e518e702f7ccb44a267e9e112d403a7b3f4883a47ffbed4b48339b3c34"],
  [7169, "554b0a5efea9ef183f2f9b931b7497995d9eb26f5c5c6dad2b97d62fc5ac31d9"],
];

test.each(VECTORS)("the hash of %i bytes is the published one", (length, hash) => {
  const derive = deriver("BLAKE3 2019-12-27 16:29:52 test vectors context");
  expect(derive(Uint8Array.from({ length }, (_, place) => place % 251))).toBe(hash);
});

const entry = (what: string): Entry => ({ action: what, details: { b: [1, { y: null, x: "ü\n" }], a: true } });

function linked(content: Entry, sequence: number, previous: string): Entry {
  const whole = { ...content, sequence, previous_hash: previous };
  return { ...whole, hash: hashOf(whole), id: String(sequence).padStart(12, "0"), org_id: "o", _xact_id: "1" };
}

function chainOf(contents: readonly Entry[]): readonly Entry[] {
  const chain: Entry[] = [];
  for (const content of contents) {
    chain.push(linked(content, chain.length + 1, String(chain.at(-1)?.["hash"] ?? BEGINNING.hash)));
  }
  return chain;
}

const of = (...words: readonly string[]): readonly Entry[] => chainOf(words.map(entry));
const faultOf = (entries: readonly Entry[]) => verified(entries, BEGINNING, []).fault;

test("an entry has the hash that the server gives it", () => {
  expect(of("a")[0]?.["hash"]).toBe("419d3d7571a54a6faadf247fd8425ccc60e8ba3d6afd5ec2cd1869b8ebd5ce12");
});

test("a whole chain is whole, in one piece and in several", () => {
  const chain = of("a", "b", "c", "d");
  const seal = { sequence: 4, hash: String(chain[3]?.["hash"]) };
  expect(verified(chain, BEGINNING, [seal])).toEqual({ seal, fault: null });
  expect(verified(chain.slice(3), beforeOf(chain[3] ?? {}, 4), [seal])).toEqual({ seal, fault: null });
  const half = verified(chain.slice(0, 2), BEGINNING, []).seal;
  expect(verified(chain.slice(2), half, [])).toEqual({ seal, fault: null });
  expect(verified([], BEGINNING, [])).toEqual({ seal: BEGINNING, fault: null });
});

test("a changed field is found at its entry, wherever it is", () => {
  const chain = of("a", "b", "c");
  for (const changed of [{ action: "z" }, { details: {} }, { created: null }, { hash: BEGINNING.hash }]) {
    const tampered = chain.map((one, place) => (place === 1 ? { ...one, ...changed } : one));
    expect(faultOf(tampered)).toEqual({ kind: "changed", sequence: 2, found: 2 });
  }
});

test("a changed entry with a new hash is found at the next one", () => {
  const chain = of("a", "b", "c");
  const tampered = chain.map((one, place) => (place === 1 ? linked(entry("z"), 2, String(chain[0]?.["hash"])) : one));
  expect(faultOf(tampered)).toEqual({ kind: "unlinked", sequence: 3, found: 3 });
});

test("removed, swapped and repeated entries are found", () => {
  const [a, b, c, d] = of("a", "b", "c", "d");
  if (a === undefined || b === undefined || c === undefined || d === undefined) throw new Error("four entries");
  expect(faultOf([a, c, d])).toEqual({ kind: "missing", sequence: 2, found: 3 });
  expect(faultOf([a, c, b, d])).toEqual({ kind: "missing", sequence: 2, found: 3 });
  expect(faultOf([a, b, b, c])).toEqual({ kind: "misplaced", sequence: 3, found: 2 });
  expect(faultOf([b, c])).toEqual({ kind: "missing", sequence: 1, found: 2 });
  expect(faultOf([{ ...a, sequence: "1" }])).toEqual({ kind: "misplaced", sequence: 1, found: null });
});

test("a cut end and a chain that was written again are found by an entry that somebody kept", () => {
  const chain = of("a", "b", "c");
  const known = { sequence: 3, hash: String(chain[2]?.["hash"]) };
  const cut = verified(chain.slice(0, 2), BEGINNING, [known]);
  expect(cut.fault).toBe(null);
  expect(faultOfEnd(cut.seal, [known])).toEqual({ kind: "cut", sequence: 3, found: null });
  expect(faultOfEnd(verified(chain, BEGINNING, [known]).seal, [known])).toBe(null);
  expect(verified(of("a", "x", "c"), BEGINNING, [known]).fault).toEqual({ kind: "rewritten", sequence: 3, found: 3 });
});

test("the order of keys says nothing, and numbers keep their digits", () => {
  const text = String.raw`{"b":[1.0,1e20,-0.0,12345678901234567890],"a":{"\u001f\"\\":"\u007f\u2028"}}`;
  const read = parseJson(text);
  if (typeof read !== "object" || read === null) throw new Error("an object");
  const reversed = Object.fromEntries(Object.entries(read).reverse());
  expect(hashOf({ ...read })).toBe(hashOf(reversed));
  expect(hashOf({ ...read })).not.toBe(hashOf({ ...read, b: [1, 1e20, 0, 12345678901234567890] }));
});

test("keys are in the order of their bytes", () => {
  expect(hashOf({ "\u{10000}": 1, "\uffff": 2 })).toBe(hashOf({ "\uffff": 2, "\u{10000}": 1 }));
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.integer()), (object) => {
      const byBytes = Object.keys(object).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      const derive = deriver("assay audit entry 1");
      const { hash: _1, id: _2, org_id: _3, _xact_id: _4, _pagination_key: _5, ...content } = object;
      const members = byBytes.filter((key) => key in content).map((key) => `${JSON.stringify(key)}:${String(object[key])}`);
      expect(hashOf(object)).toBe(derive(new TextEncoder().encode(`{${members.join(",")}}`)));
    }),
  );
});

test("any change of a chain is found", () => {
  const content = fc.record({ action: fc.string(), details: fc.jsonValue({ maxDepth: 3 }) });
  fc.assert(
    fc.property(fc.array(content, { minLength: 1, maxLength: 6 }), fc.nat(), fc.nat(2), (contents, index, how) => {
      const chain = chainOf(contents.map((one) => ({ ...one, details: parseJson(printJson(one.details)) })));
      const place = index % chain.length;
      expect(faultOf(chain)).toBe(null);
      const tampered = [
        chain.map((one, at) => (at === place ? { ...one, more: null } : one)),
        chain.flatMap((one, at) => (at === place ? [one, one] : [one])),
        [...chain.slice(0, place), ...chain.slice(place + 1), linked(entry("end"), 99, BEGINNING.hash)],
      ][how];
      expect(faultOf(tampered ?? [])).not.toBe(null);
    }),
    { numRuns: 60 },
  );
});

test("a seal is read as it is written", () => {
  const seal = { sequence: 18_231, hash: "0a".repeat(32) };
  expect(readSeal(sealText(seal))).toEqual(seal);
  expect(readSeal(`  #7:${seal.hash}\n`)).toEqual({ sequence: 7, hash: seal.hash });
  for (const text of ["", "7", seal.hash, `7 ${seal.hash}0`, `0 ${seal.hash}`, `x ${seal.hash}`]) expect(readSeal(text)).toBe(null);
});
