// Tests that the form of a provider's metadata loses nothing, and says what is wrong.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Exact, parseJson, printJson } from "../../lib/json";
import { EMPTY_MODEL, formOf, isEmbedding, metadataOf, namedModels, type Fields } from "./form";
import { addressOf, leadsElsewhere, OFFERED, providerOf } from "./providers";

const line = fc.oneof(fc.constantFrom("a", "gpt-4o", "https://a.example/v1", "x: y", ""), fc.string());

const spec = fc.record(
  {
    format: fc.oneof(fc.constantFrom("openai", "converse", "window"), fc.jsonValue()),
    flavor: fc.oneof(fc.constantFrom("chat", "embedding"), fc.jsonValue()),
    input_cost_per_mil_tokens: fc.oneof(fc.double({ noNaN: true, min: 0, max: 100 }), fc.jsonValue()),
    output_cost_per_mil_tokens: fc.constantFrom(0, 1.5, null, new Exact("1.0")),
    multimodal: fc.boolean(),
  },
  { requiredKeys: [] },
);

const metadata: fc.Arbitrary<Fields> = fc.record(
  {
    api_base: fc.oneof(line, fc.jsonValue()),
    auth_type: line,
    region: line,
    models: fc.oneof(fc.array(line), fc.jsonValue()),
    customModels: fc.oneof(fc.dictionary(line, spec), fc.jsonValue()),
    additionalHeaders: fc.oneof(fc.dictionary(line, line), fc.jsonValue()),
    supportsStreaming: fc.boolean(),
    weight: fc.integer(),
    tls: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

const optional = OFFERED.filter(({ fields }) => fields.every(({ isRequired }) => isRequired !== true)).map(({ type }) => type);

test("metadata that nobody changes stay as they are", () => {
  fc.assert(
    fc.property(fc.constantFrom(...optional, "unknown"), metadata, (type, before) => {
      const shown = formOf(type, before);
      const after = metadataOf(type, shown);
      const sorted = (fields: Fields): unknown => parseJson(printJson(fields, 0));
      expect("metadata" in after ? sorted(after.metadata) : after).toEqual(sorted(before));
    }),
  );
});

test("what a person enters becomes metadata", () => {
  const form = {
    texts: { api_base: " http://127.0.0.1:8000/v1 ", region: "not of this type" },
    models: " m1 \n\nm2",
    custom: [{ ...EMPTY_MODEL, name: "m1", input: "1.0", rest: { multimodal: true } }],
    headers: "x-team:  evals\n",
    other: '{"weight": 2}',
  };
  expect(metadataOf("compatible", form)).toEqual({
    metadata: {
      weight: 2,
      api_base: "http://127.0.0.1:8000/v1",
      models: ["m1", "m2"],
      customModels: { m1: { multimodal: true, format: "openai", flavor: "chat", input_cost_per_mil_tokens: new Exact("1.0") } },
      additionalHeaders: { "x-team": "evals" },
    },
  });
});

const BLANK = { texts: { api_base: "a" }, models: "", custom: [], headers: "", other: "" };

test.each([
  ["Base URL is missing.", { ...BLANK, texts: {} }],
  ["A custom model has no name.", { ...BLANK, custom: [EMPTY_MODEL] }],
  ["Two custom models have the name a.", { ...BLANK, custom: [{ ...EMPTY_MODEL, name: "a" }, { ...EMPTY_MODEL, name: "a " }] }],
  ["A price of the model a is not a number.", { ...BLANK, custom: [{ ...EMPTY_MODEL, name: "a", input: "free" }] }],
  ["“x” is not a header: write its name, a colon and its value.", { ...BLANK, headers: "x" }],
  ["The other metadata are not JSON.", { ...BLANK, other: "{" }],
  ["The other metadata have to be a JSON object.", { ...BLANK, other: "[]" }],
])("%s", (fault, form) => {
  expect(metadataOf("compatible", form)).toEqual({ fault });
});

test("a key is kept only where it goes to the same place", () => {
  expect(leadsElsewhere({ api_base: "a", weight: 1 }, { api_base: "a", models: ["m"] })).toBe(false);
  expect(leadsElsewhere({}, { api_base: "" })).toBe(false);
  expect(leadsElsewhere({ api_base: "a" }, { api_base: "b" })).toBe(true);
  expect(leadsElsewhere({}, { region: "eu-west-1" })).toBe(true);
});

test("addresses are shown without their scheme", () => {
  expect(addressOf("openai", {})).toBe("api.openai.com/v1");
  expect(addressOf("openai", { api_base: "http://gpu:8000/v1" })).toBe("gpu:8000/v1");
  expect(addressOf("replicate", {})).toBe("");
  expect(providerOf("nobody").title).toBe("nobody");
});

test("models to try come from the metadata", () => {
  expect(namedModels({ models: ["a"], customModels: { b: {} } })).toEqual(["a"]);
  expect(namedModels({ customModels: { b: {} } })).toEqual(["b"]);
  expect(namedModels({ models: [] })).toEqual([]);
  expect(isEmbedding({ customModels: { b: { flavor: "embedding" } } }, "b")).toBe(true);
  expect(isEmbedding({}, "text-embedding-3-small")).toBe(true);
  expect(isEmbedding({ customModels: { "embed-chat": { flavor: "chat" } } }, "embed-chat")).toBe(false);
});
