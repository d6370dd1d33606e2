// Tests that an editor of messages keeps what it does not show, and finds the variables of templates.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  isTools,
  numberText,
  NUMBERS,
  otherParameters,
  parametersInWords,
  readNumber,
  readTools,
  responseKind,
  withOtherParameters,
  withParameter,
  withResponseKind,
  writeTools,
} from "./ModelPickerLogic";
import {
  moved,
  nextRole,
  partText,
  removed,
  restOf,
  templatePieces,
  textsOf,
  variablesOf,
  withMessageList,
  withPart,
  withPartText,
  withRest,
  withToolCall,
} from "./MessageEditorLogic";

const fields = fc.dictionary(fc.string(), fc.jsonValue());

test("moving keeps all messages, and moving back gives the list before", () => {
  fc.assert(
    fc.property(fc.array(fc.integer(), { minLength: 1 }), fc.nat(), fc.integer({ min: -3, max: 3 }), (all, at, by) => {
      const from = at % all.length;
      const to = Math.max(0, Math.min(all.length - 1, from + by));
      const after = moved(all, from, by);
      expect([...after].sort()).toEqual([...all].sort());
      expect(after[to]).toBe(all[from]);
      expect(moved(after, to, from - to)).toEqual(all);
    }),
  );
});

test("other fields of a message are edited without losing the known ones", () => {
  fc.assert(
    fc.property(fields, fields, (message, rest) => {
      const after = withRest(message, rest);
      expect(restOf(after)).toEqual(restOf(rest));
      expect(after["content"]).toEqual(message["content"]);
    }),
  );
});

test("a prompt keeps the fields beside its messages", () => {
  const prompt = { type: "chat", tools: "[]", extra: 1, messages: [{ role: "user", content: "a" }] };
  expect(withMessageList(prompt, (all) => removed(all, 0))).toEqual({ ...prompt, messages: [] });
});

test("parts are added to a text, and changed without losing their fields", () => {
  const message = withPart({ role: "user", content: "Hi" }, "image");
  expect(message["content"]).toEqual([{ type: "text", text: "Hi" }, { type: "image_url", image_url: { url: "" } }]);
  const image = { type: "image_url", image_url: { url: "a", detail: "low" } };
  expect(withPartText(image, "b")).toEqual({ type: "image_url", image_url: { url: "b", detail: "low" } });
  expect(partText({ type: "file", file: {} })).toBeNull();
  expect(withToolCall({ role: "assistant" })["tool_calls"]).toHaveLength(1);
});

test("the next role follows the last one", () => {
  expect(nextRole([])).toBe("system");
  expect(nextRole([{ role: "system" }])).toBe("user");
  expect(nextRole([{ role: "user" }])).toBe("assistant");
});

test("pieces of a template are its text, in every format", () => {
  const texts = fc.array(fc.constantFrom("{{a}}", "{{{b.c}}}", "{% if x %}", "{", "}", "{{", "text\n", "%}")).map((all) => all.join(""));
  fc.assert(
    fc.property(texts, fc.constantFrom("mustache", "nunjucks", "none"), (text, format) => {
      expect(templatePieces(text, format).map((piece) => piece.text).join("")).toBe(text);
    }),
  );
});

test.each([
  ["mustache", "{{a}} {{ b.c }} {{{d}}} {{&e}} {{! note }} {{> part}}", ["a", "b.c", "d", "e"]],
  ["mustache", "{{#items}}{{name}}{{/items}}{{^none}}{{x}}{{/none}}{{y}}", ["items", "none", "y"]],
  ["mustache", "{% if a %} {{}} {{.}}", []],
  ["nunjucks", "{% for a in all %}{{ a.name }}{{ loop.index }}{% endfor %}{% if not b %}{{ c | upper }}{% endif %}", ["all", "b", "c"]],
  ["none", "{{a}}", []],
] as const)("variables of a template of %s: %s", (format, text, names) => {
  expect(variablesOf([text], format)).toEqual(names);
});

test("texts come from messages, their parts, calls and tools, in their order", () => {
  const prompt = {
    type: "chat",
    tools: "{{t}}",
    messages: [
      { role: "system", content: "1" },
      { role: "user", content: [{ type: "text", text: "2" }, { type: "image_url", image_url: { url: "3" } }] },
      { role: "assistant", tool_calls: [{ id: "4", type: "function", function: { name: "5", arguments: "6" } }] },
    ],
  };
  expect(textsOf(prompt)).toEqual(["1", "2", "3", "4", "5", "6", "{{t}}"]);
});

test("parameters without a field are kept, and edited without touching the others", () => {
  fc.assert(
    fc.property(fields, fields, (params, other) => {
      const mixed = { ...params, temperature: 0.5, response_format: { type: "json_object" } };
      expect(withOtherParameters(mixed, otherParameters(mixed))).toEqual(mixed);
      const after = withOtherParameters(mixed, { ...other, temperature: 1 });
      expect(after["temperature"]).toBe(1);
      expect(after["response_format"]).toEqual(mixed.response_format);
    }),
  );
});

test("a parameter in an unusual form is among the others", () => {
  expect(otherParameters({ tool_choice: { type: "function" }, temperature: "warm", seed: 1 })).toEqual({
    tool_choice: { type: "function" },
    temperature: "warm",
  });
});

test("numbers are read within their bounds", () => {
  const [temperature, tokens] = NUMBERS;
  if (temperature === undefined || tokens === undefined) throw new Error("The list of parameters is empty.");
  expect(readNumber(" 0.2 ", temperature)).toEqual({ value: 0.2 });
  expect(readNumber("", temperature)).toEqual({ value: undefined });
  expect(readNumber("3", temperature)).toHaveProperty("fault");
  expect(readNumber("x", temperature)).toHaveProperty("fault");
  expect(readNumber("1.5", tokens)).toHaveProperty("fault");
  expect(numberText(0)).toBe("0");
  expect(numberText("0")).toBe("");
  expect(withParameter({ seed: 1 }, "seed", undefined)).toEqual({});
});

test("the answer's form and the parameters are put in words", () => {
  expect(responseKind({})).toBe("text");
  expect(responseKind(withResponseKind({}, "json_schema"))).toBe("json_schema");
  expect(withResponseKind({ response_format: {} }, "text")).toEqual({});
  expect(parametersInWords({ temperature: 0.2, stop: null, response_format: { type: "json_object" } })).toBe("temperature 0.2 · json_object");
});

test("tools are a list of objects or a template", () => {
  expect(readTools("")).toEqual([]);
  expect(writeTools(readTools('[{"a":1.0}]'))).toBe('[{"a":1.0}]');
  expect(writeTools([])).toBe("");
  expect(isTools(readTools("{{tools}}"))).toBe(true);
  expect(isTools(readTools("[1]"))).toBe(false);
  expect(isTools("x")).toBe(false);
});
