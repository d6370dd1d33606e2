// Tests of addresses, edits, lists and copied code of prompts and functions.
import fc from "fast-check";
import { expect, test } from "vitest";
import { versionsIn, type PromptRecord } from "../../api/prompts";
import { readAddress } from "../../lib/address";
import { readPage } from "../../lib/pages";
import {
  filledInput,
  isChoiceScores,
  isSame,
  missingIn,
  modelIn,
  paramsIn,
  slugFor,
  toolsIn,
  variablesIn,
  versionText,
  withModel,
  withParams,
  withPrompt,
  withTools,
  withType,
} from "./draft";
import { kindOf, listed, typeInWords } from "./listing";
import { environmentCode, hasSnippets, snippets } from "./snippets";
import { KINDS, LOOKS, PANELS, promptsAddress, promptsDefaults, readPromptsPlace } from "./url";

const word = fc.string({ minLength: 1, maxLength: 12 }).filter((text) => text.trim() !== "" && !/^\.{1,2}$/.test(text));
const text = fc.string({ maxLength: 12 });

const states = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    organization: word,
    project: word,
    slug: fc.oneof(fc.constant(""), word),
    filter: text,
    version: text,
    compare: text,
    environment: text,
    panel: fc.constantFrom(...PANELS),
    look: fc.constantFrom(...LOOKS),
  })
  .map((state) => {
    const { kind, organization, project, slug, filter } = state;
    return slug === "" ? { ...promptsDefaults(kind, organization, project), filter } : { ...state, filter: "" };
  });

test("an address is read as the state that wrote it", () => {
  fc.assert(
    fc.property(states, (state) => {
      const address = readAddress(promptsAddress(state));
      const place = address === null ? null : readPage(address);
      expect(place === null ? null : readPromptsPlace(place)).toEqual(state);
    }),
  );
});

const record = (fields: Partial<PromptRecord> = {}): PromptRecord => ({
  id: "1",
  version: "1000198287786180608",
  projectId: "p",
  name: "Answer",
  slug: "answer",
  description: "",
  data: {},
  hasData: true,
  type: "",
  kind: "prompt",
  code: {},
  metadata: {},
  isInternal: false,
  whole: { name: "Answer", slug: "answer" },
  ...fields,
});

const data = { prompt: { type: "chat", messages: [{ role: "user", content: "{{question}} {{input.tone}}" }] }, options: { model: "m", other: 1 }, parser: null, extra: 2 };

test("edits keep what they do not change", () => {
  const changed = withTools(withParams(withModel(data, "n"), { temperature: 0 }), "[]");
  expect([modelIn(changed), paramsIn(changed), toolsIn(changed)]).toEqual(["n", { temperature: 0 }, "[]"]);
  expect(changed).toMatchObject({ extra: 2, parser: null, options: { other: 1 } });
  expect(isSame(withTools(withParams(withModel(changed, "m"), {}), ""), data)).toBe(true);
});

test("a prompt becomes a text and messages again without losing what was written", () => {
  const both = withPrompt(data, { type: "chat", messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "{{question}}" }], extra: 1 });
  const completion = withType(both, "completion");
  expect(completion["prompt"]).toEqual({ extra: 1, type: "completion", content: "Be brief.\n\n{{question}}" });
  expect(withType(completion, "chat")["prompt"]).toEqual({ extra: 1, type: "chat", messages: [{ role: "user", content: "Be brief.\n\n{{question}}" }] });
});

test("an input gets the members that the variables name", () => {
  expect(variablesIn(data)).toEqual(["question", "input.tone"]);
  expect(missingIn(data, { question: null })).toEqual(["tone"]);
  expect(filledInput(data, { question: 1 })).toEqual({ question: 1, tone: "" });
  const whole = withPrompt(data, { type: "chat", messages: [{ role: "user", content: "{{input}}" }] });
  expect(filledInput(whole, null)).toBe("");
  expect(filledInput({ ...whole, parser: { type: "llm_classifier" } }, null)).toEqual({ input: "" });
});

test("choices of a judge have scores from 0 to 1", () => {
  expect(isChoiceScores({ yes: 1, no: 0 })).toBe(true);
  expect(isChoiceScores({ yes: 2 })).toBe(false);
  expect(isChoiceScores(["yes"])).toBe(false);
});

test("the text of a version has no notes of the console, and shows edits", () => {
  const one = record({ data, whole: { name: "Answer", slug: "answer", prompt_data: data, metadata: { __note: { text: "x" } } } });
  expect(versionText(one)).not.toContain("__note");
  expect(versionText(one, withModel(data, "edited"))).toContain("edited");
});

test("slugs have letters, digits and dashes", () => {
  expect(slugFor("  Réponse: brève! ")).toBe("reponse-breve");
  fc.assert(fc.property(fc.string(), (name) => /^(?:[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*)?$/u.test(slugFor(name))));
});

test("a note counts only for the version that it was written with", () => {
  const note = (after: string, said: string) => ({ __note: { text: said, by: "u", after } });
  const rows = [
    { _xact_id: "12", metadata: note("10", "stale, kept by a merge") },
    { _xact_id: "11", metadata: note("10", "second") },
    { _xact_id: "10", metadata: note("", "first") },
    { _xact_id: "9", metadata: null },
  ];
  expect(versionsIn(rows)).toEqual([
    { version: "12", note: "", author: "" },
    { version: "11", note: "second", author: "u" },
    { version: "10", note: "", author: "" },
    { version: "9", note: "", author: "" },
  ]);
  expect(versionsIn(rows.slice(2, 3))).toEqual([{ version: "10", note: "first", author: "u" }]);
});

test("judges and code are functions, the rest prompts, and what belongs to experiments is left out", () => {
  const judge = record({ id: "2", name: "Judge", type: "scorer" });
  const code = record({ id: "3", name: "Calc", kind: "code", type: "tool" });
  const records = [record(), judge, code, record({ id: "4", isInternal: true })];
  expect(records.map(kindOf)).toEqual(["prompts", "functions", "functions", "prompts"]);
  const sources = { records, versions: new Map([["1", 2]]), pinned: undefined, uses: new Map<string, number>() };
  expect(listed(sources, "prompts", "ANSW")).toMatchObject([{ versions: 2, uses: 0, pinned: null }]);
  expect(listed(sources, "functions", "").map(({ record: one }) => one.name)).toEqual(["Calc", "Judge"]);
  expect([judge, code].map(typeInWords)).toEqual(["scorer by a model", "tool"]);
});

const source = {
  origin: "http://127.0.0.1:8000",
  project: 'a "b" $c #{d}',
  slug: "answer",
  id: "5fb7b4a1",
  version: "",
  environment: "production",
  input: { question: 'He said "é" #{x} $HOME `y`' },
  isPrompt: true,
};

test("copied code names the environment, and never a key", () => {
  const all = snippets(source);
  expect(all.map(({ id }) => id)).toEqual(["python", "typescript", "go", "java", "ruby", "curl"]);
  for (const { code } of all) {
    expect(code).toContain("production");
    expect(code).not.toContain("sk-");
  }
  expect(environmentCode(source.origin)).toContain("BRAINTRUST_API_KEY=sk-...");
  expect(all.find(({ id }) => id === "ruby")?.code).not.toContain('said \\\\\\"\\\\u00e9\\\\\\" #{x}');
  expect(hasSnippets({ ...source, project: "a\u202eb" })).toBe(false);
});
