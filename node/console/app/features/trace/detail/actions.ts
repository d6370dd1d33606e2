// Texts that people copy from a span: its id, its content, and commands that read it or call its model again.
import { isRecord, type Fields } from "../../../api/narrow";
import type { SpanPlace } from "../../../api/spans";
import { called, literal, path } from "../../../btql";
import { printJson } from "../../../lib/json";
import { programQuoted, shellQuoted } from "../../../lib/quoting";

/** A query that reads one span. */
export const queryOf = (place: SpanPlace, id: string): string =>
  [
    `SELECT * FROM ${called(place.source.kind, literal(place.source.id))}`,
    `WHERE ${path(["root_span_id"])} = ${literal(place.root)} AND ${path(["id"])} = ${literal(id)}`,
  ].join(" ");

/** A call with a body of JSON, which copied code makes. */
interface Request {
  readonly url: string;
  readonly body: unknown;
}

const reading = (origin: string, place: SpanPlace, id: string): Request => ({
  url: `${origin}/btql`,
  body: { query: queryOf(place, id), ...(place.version === "" ? {} : { version: place.version }) },
});

/** Characters of a command that would act on the terminal into which it is pasted. JSON can name them instead. */
const named = (json: string): string =>
  json.replace(/[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f]/gu, (letter) =>
    [...letter.split("")].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
  );

const curl = ({ url, body }: Request): string =>
  [
    `curl ${shellQuoted(url)} \\`,
    '  -H "Authorization: Bearer $BRAINTRUST_API_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    `  -d ${shellQuoted(named(printJson(body, 0)))}`,
  ].join("\n");

const python = ({ url, body }: Request, rest: string): string =>
  [
    "import json",
    "import os",
    "import urllib.request",
    "",
    "request = urllib.request.Request(",
    `    ${programQuoted(url)},`,
    `    data=${programQuoted(named(printJson(body, 0)))}.encode(),`,
    '    headers={"Authorization": "Bearer " + os.environ["BRAINTRUST_API_KEY"], "Content-Type": "application/json"},',
    ")",
    `print(json.load(urllib.request.urlopen(request))${rest})`,
  ].join("\n");

const typeScript = ({ url, body }: Request, rest: string): string =>
  [
    `const response = await fetch(${programQuoted(url)}, {`,
    '  method: "POST",',
    "  headers: {",
    "    authorization: `Bearer ${process.env.BRAINTRUST_API_KEY}`,",
    '    "content-type": "application/json",',
    "  },",
    `  body: ${programQuoted(named(printJson(body, 0)))},`,
    "});",
    `console.log((await response.json())${rest});`,
  ].join("\n");

export const asCurl = (origin: string, place: SpanPlace, id: string): string => curl(reading(origin, place, id));

export const asPython = (origin: string, place: SpanPlace, id: string): string =>
  python(reading(origin, place, id), '["data"][0]');

export const asTypeScript = (origin: string, place: SpanPlace, id: string): string =>
  typeScript(reading(origin, place, id), ".data[0]");

/** Parameters of a model call that are recorded in the metadata of its span. */
const PARAMETERS = ["temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "tools", "tool_choice", "response_format"];

/** The model call that a span recorded; null if it recorded none that can be made again. */
export function modelCallOf(row: Fields): Fields | null {
  const metadata = isRecord(row["metadata"]) ? row["metadata"] : {};
  const input = row["input"];
  const messages = isRecord(input) ? input["messages"] : input;
  const model = metadata["model"] ?? (isRecord(input) ? input["model"] : undefined);
  const isChat = Array.isArray(messages) && messages.length > 0 && messages.every((one) => isRecord(one) && "role" in one);
  if (typeof model !== "string" || !isChat) return null;
  const given = PARAMETERS.filter((name) => metadata[name] !== undefined && metadata[name] !== null);
  return { model, messages, ...Object.fromEntries(given.map((name) => [name, metadata[name]])) };
}

const calling = (origin: string, body: Fields): Request => ({ url: `${origin}/v1/proxy/chat/completions`, body });

export const callAsCurl = (origin: string, body: Fields): string => curl(calling(origin, body));

export const callAsPython = (origin: string, body: Fields): string =>
  python(calling(origin, body), '["choices"][0]["message"]');

export const callAsTypeScript = (origin: string, body: Fields): string =>
  typeScript(calling(origin, body), ".choices[0].message");
