// Code that runs a prompt or a function in six languages. The key is always a variable.
import { isQuotable, programQuoted, shellQuoted } from "../../lib/quoting";

export const LANGUAGES = ["python", "typescript", "go", "java", "ruby", "curl"] as const;

export type Language = (typeof LANGUAGES)[number];

export interface SnippetSource {
  readonly origin: string;
  readonly project: string;
  readonly slug: string;
  readonly id: string;
  /** A transaction; empty for the newest, or for the one of the environment. */
  readonly version: string;
  /** The slug of an environment; empty for none. */
  readonly environment: string;
  readonly input: unknown;
  /** Whether the SDK can load it and fill in its variables. */
  readonly isPrompt: boolean;
}

export interface Snippet {
  readonly id: Language;
  readonly title: string;
  readonly before: string;
  readonly code: string;
}

/** Whether the names can stand in code that is copied. */
export const hasSnippets = ({ project, slug, environment }: SnippetSource): boolean =>
  isQuotable(project) && isQuotable(slug) && (environment === "" || isQuotable(environment));

/** JSON of ASCII letters alone. A text in it is a string of every language here, whose escapes are the same. */
const ascii = (value: unknown): string =>
  JSON.stringify(value ?? null).replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A string of Ruby, in which `#{` would run code. */
const rubyQuoted = (text: string): string => ascii(text).replaceAll("#", "\\#");

/** A value of JSON in Python. */
const python = (value: unknown): string => `json.loads(${ascii(ascii(value))})`;

/** The variables of a prompt, which are the members of its input. */
const variablesOf = (input: unknown): unknown => (typeof input === "object" && input !== null && !Array.isArray(input) ? input : { input });

/** The environment in which the code runs. */
export const environmentCode = (origin: string): string =>
  [
    "export BRAINTRUST_API_KEY=sk-...",
    `export BRAINTRUST_API_URL=${shellQuoted(origin)} BRAINTRUST_APP_URL=${shellQuoted(origin)}`,
  ].join("\n");

const pathOf = ({ id }: SnippetSource): string => `/v1/function/${id}/invoke`;

/** The body of the call, as JSON text. */
const bodyOf = ({ input, version, environment }: SnippetSource): string =>
  ascii({ input, ...(version !== "" ? { version } : environment !== "" ? { environment } : {}) });

function pythonCode(source: SnippetSource): string {
  const { project, slug, version, environment, input, isPrompt } = source;
  const at = version !== "" ? `, version=${programQuoted(version)}` : environment !== "" ? `, environment=${programQuoted(environment)}` : "";
  const named = `${programQuoted(slug)}${at}`;
  if (!isPrompt) return `import json\nimport braintrust\n\nresult = braintrust.invoke(project_name=${programQuoted(project)}, slug=${programQuoted(slug)}${version === "" ? "" : at}, input=${python(input)})\nprint(result)`;
  return `import json
import braintrust

prompt = braintrust.load_prompt(project=${programQuoted(project)}, slug=${named})
# The arguments of a call of the model, with the variables filled in:
print(prompt.build(**${python(variablesOf(input))}))
# Or let the server call the model:
print(braintrust.invoke(project_name=${programQuoted(project)}, slug=${programQuoted(slug)}${version === "" ? "" : at}, input=${python(input)}))`;
}

function typescriptCode({ project, slug, version, environment, input, isPrompt }: SnippetSource): string {
  const at = version !== "" ? `, version: ${programQuoted(version)}` : "";
  const where = at !== "" ? at : environment !== "" ? `, environment: ${programQuoted(environment)}` : "";
  const invoked = `await invoke({ projectName: ${programQuoted(project)}, slug: ${programQuoted(slug)}${at}, input: ${ascii(input)} })`;
  if (!isPrompt) return `import { invoke } from "braintrust";\n\nconsole.log(${invoked});`;
  return `import { invoke, loadPrompt } from "braintrust";

const prompt = await loadPrompt({ projectName: ${programQuoted(project)}, slug: ${programQuoted(slug)}${where} });
// The arguments of a call of the model, with the variables filled in:
console.log(prompt.build(${ascii(variablesOf(input))}));
// Or let the server call the model:
console.log(${invoked});`;
}

const goCode = (source: SnippetSource): string => `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	body := strings.NewReader(${ascii(bodyOf(source))})
	request, err := http.NewRequest("POST", os.Getenv("BRAINTRUST_API_URL")+"${pathOf(source)}", body)
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("BRAINTRUST_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	fmt.Println(response.Status, string(answer), err)
}`;

const javaCode = (source: SnippetSource): string => `import java.net.URI;
import java.net.http.*;

public class Invoke {
  public static void main(String[] arguments) throws Exception {
    var uri = URI.create(System.getenv("BRAINTRUST_API_URL") + "${pathOf(source)}");
    var request = HttpRequest.newBuilder(uri)
        .header("Authorization", "Bearer " + System.getenv("BRAINTRUST_API_KEY"))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(${ascii(bodyOf(source))}))
        .build();
    var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(response.statusCode() + " " + response.body());
  }
}`;

const rubyCode = (source: SnippetSource): string => `require "net/http"

uri = URI(ENV.fetch("BRAINTRUST_API_URL") + "${pathOf(source)}")
headers = { "Authorization" => "Bearer #{ENV.fetch("BRAINTRUST_API_KEY")}", "Content-Type" => "application/json" }
response = Net::HTTP.post(uri, ${rubyQuoted(bodyOf(source))}, headers)
puts response.code, response.body`;

const curlCode = (source: SnippetSource): string => `curl -s "$BRAINTRUST_API_URL${pathOf(source)}" \\
  -H "Authorization: Bearer $BRAINTRUST_API_KEY" -H 'Content-Type: application/json' \\
  -d ${shellQuoted(bodyOf(source))}`;

const PLAIN = "This needs no SDK.";

/** The code in each language. Run what `environmentCode` gives before it. */
export const snippets = (source: SnippetSource): readonly Snippet[] => [
  { id: "python", title: "Python", before: "Install the SDK with “pip install braintrust”.", code: pythonCode(source) },
  { id: "typescript", title: "TypeScript", before: "Install the SDK with “npm install braintrust”.", code: typescriptCode(source) },
  { id: "go", title: "Go", before: PLAIN, code: goCode(source) },
  { id: "java", title: "Java", before: `${PLAIN} Java 11 or later runs it as a single file.`, code: javaCode(source) },
  { id: "ruby", title: "Ruby", before: PLAIN, code: rubyCode(source) },
  { id: "curl", title: "cURL", before: PLAIN, code: curlCode(source) },
];
