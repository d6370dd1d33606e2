// Commands and programs that run the query elsewhere. The key is always a variable, and never enters the text.
import { isQuotable, shellQuoted } from "../../lib/quoting";
import { lexemesOf } from "./lexer";

/** The query as it is copied, and where it runs. */
export interface Copied {
  readonly origin: string;
  readonly organization: string;
  readonly query: string;
  /** A transaction id, or an empty text for the newest. */
  readonly version: string;
}

/** Characters that a terminal or an editor may act upon or not show. */
const UNSEEN = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/gu;

/** JSON without any character that cannot be seen: these are written as escapes. */
export const seenJson = (value: unknown): string =>
  JSON.stringify(value).replace(UNSEEN, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`)
      .join(""),
  );

const bodyOf = ({ query, version }: Copied): Readonly<Record<string, string>> => ({
  query,
  fmt: "json",
  ...(version === "" ? {} : { version }),
});

/** The header that names the organization; none where its name cannot stand in a header. */
const organizationHeader = (name: string): string | null => (/^[\x20-\x7e]+$/.test(name) ? name : null);

export function curlOf(copied: Copied): string {
  const name = organizationHeader(copied.organization);
  return [
    `curl --fail-with-body ${shellQuoted(`${copied.origin}/btql`)}`,
    `  -H "Authorization: Bearer $BRAINTRUST_API_KEY"`,
    `  -H 'Content-Type: application/json'`,
    ...(name === null ? [] : [`  -H ${shellQuoted(`x-bt-org-name: ${name}`)}`]),
    `  -d ${shellQuoted(seenJson(bodyOf(copied)))}`,
  ].join(" \\\n");
}

export function pythonOf(copied: Copied): string {
  const name = organizationHeader(copied.organization);
  const fields = Object.entries(bodyOf(copied)).map(([key, value]) => `    ${seenJson(key)}: ${seenJson(value)},`);
  return `import json
import os
import urllib.request

body = {
${fields.join("\n")}
}
request = urllib.request.Request(
    ${seenJson(`${copied.origin}/btql`)},
    data=json.dumps(body).encode(),
    headers={
        "Authorization": "Bearer " + os.environ["BRAINTRUST_API_KEY"],
        "Content-Type": "application/json",${name === null ? "" : `\n        "x-bt-org-name": ${seenJson(name)},`}
    },
)
with urllib.request.urlopen(request) as response:
    for row in json.load(response)["data"]:
        print(row)`;
}

/** Writes a query in one line: without comments, and with one space where white space was. */
export function inOneLine(query: string): string {
  const parts: string[] = [];
  let end = 0;
  for (const { kind, from, to, text } of lexemesOf(query)) {
    if (kind === "comment") continue;
    if (parts.length > 0 && from > end) parts.push(" ");
    parts.push(text);
    end = to;
  }
  return parts.join("");
}

/** The query for the command line; null if a text in it has characters that cannot be quoted safely. */
export function commandOf({ origin, organization, query }: Copied): string | null {
  const line = inOneLine(query);
  if (!isQuotable(line)) return null;
  const name = organizationHeader(organization);
  const variables = [`BRAINTRUST_API_URL=${shellQuoted(origin)}`, ...(name === null ? [] : [`BRAINTRUST_ORG_NAME=${shellQuoted(name)}`])];
  return `${variables.join(" ")} bt sql ${shellQuoted(line)}`;
}
