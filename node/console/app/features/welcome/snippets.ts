// The code that sends a first trace, complete for one server and one project.
import { percentEncoded, programQuoted, shellQuoted } from "../../lib/quoting";
import type { Language } from "./url";

export interface Lesson {
  readonly id: Language;
  readonly title: string;
  readonly before: string;
  readonly code: string;
}

/** The project that the code names. */
export interface Target {
  readonly name: string;
  /** Null for a project that does not exist yet. */
  readonly id: string | null;
}

/** Where spans go. Some exporters send only ASCII in headers, so that other names give way to the id. */
const parentOf = ({ name, id }: Target): string =>
  id === null || /^[ -~]*$/.test(name) ? `project_name:${name}` : `project_id:${id}`;

/** What stands where the key belongs. A key itself never enters the code. */
const KEY_PLACEHOLDER = "sk-...";

export const environment = (origin: string): string =>
  [
    `export BRAINTRUST_API_KEY=${KEY_PLACEHOLDER}`,
    `export BRAINTRUST_API_URL=${shellQuoted(origin)} BRAINTRUST_APP_URL=${shellQuoted(origin)}`,
  ].join("\n");

const python = (project: string): string => `import braintrust

logger = braintrust.init_logger(project=${programQuoted(project)})
with logger.start_span(name="answer", type="llm") as span:
    span.log(
        input="What is 2 + 2?",
        output="4",
        metadata={"model": "example"},
        metrics={"prompt_tokens": 8, "completion_tokens": 1},
    )
logger.flush()`;

const typescript = (project: string): string => `import { initLogger } from "braintrust";

const logger = initLogger({ projectName: ${programQuoted(project)} });
await logger.traced(
  async (span) =>
    span.log({
      input: "What is 2 + 2?",
      output: "4",
      metadata: { model: "example" },
      metrics: { prompt_tokens: 8, completion_tokens: 1 },
    }),
  { name: "answer", type: "llm" },
);
await logger.flush();`;

const otlp = (origin: string, parent: string): string => `export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${shellQuoted(`${origin}/otel/v1/traces`)}
export OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20$BRAINTRUST_API_KEY,x-bt-parent=${percentEncoded(parent)}"`;

const curl = (origin: string, parent: string): string => `random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \\n'; }
now=$(date +%s)
curl -s ${shellQuoted(`${origin}/otel/v1/traces`)} \\
  -H "Authorization: Bearer $BRAINTRUST_API_KEY" -H 'Content-Type: application/json' \\
  -H ${shellQuoted(`x-bt-parent: ${parent}`)} -d @- <<EOF
{"resourceSpans": [{"scopeSpans": [{"spans": [{
  "traceId": "$(random 16)", "spanId": "$(random 8)", "name": "answer",
  "startTimeUnixNano": "\${now}000000000", "endTimeUnixNano": "\${now}840000000",
  "attributes": [
    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
    {"key": "gen_ai.request.model", "value": {"stringValue": "example"}},
    {"key": "gen_ai.prompt", "value": {"stringValue": "What is 2 + 2?"}},
    {"key": "gen_ai.completion", "value": {"stringValue": "4"}},
    {"key": "gen_ai.usage.input_tokens", "value": {"intValue": 8}},
    {"key": "gen_ai.usage.output_tokens", "value": {"intValue": 1}}]}]}]}]}
EOF`;

export function lessons(origin: string, project: Target): readonly Lesson[] {
  return [
    {
      id: "python",
      title: "Python",
      before: "Install the SDK with “pip install braintrust”, then run this file.",
      code: python(project.name),
    },
    {
      id: "typescript",
      title: "TypeScript",
      before: "Install the SDK with “npm install braintrust”. Node.js runs this file as trace.mjs without a compiler.",
      code: typescript(project.name),
    },
    {
      id: "otlp",
      title: "OTLP",
      before: "Any OpenTelemetry SDK that starts with these variables sends its spans here.",
      code: otlp(origin, parentOf(project)),
    },
    {
      id: "curl",
      title: "cURL",
      before: "This sends one span in the JSON form of OTLP. It needs no SDK.",
      code: curl(origin, parentOf(project)),
    },
  ];
}
