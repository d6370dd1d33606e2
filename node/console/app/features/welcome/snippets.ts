// The code that sends a first trace, complete for one server and one project.
import { percentEncoded, shellQuoted } from "../../lib/quoting";
import { csharp, go, java, python, ruby, typescript, type Named } from "./programs";
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

/** The version of the Java SDK, because builds of Java name one. */
const JAVA_SDK = "dev.braintrust:braintrust-sdk-java:0.3.13";

/** The port of OTLP over gRPC where the operator has set none. */
const GRPC_PORT = 4317;

const isAscii = (text: string): boolean => /^[ -~]*$/.test(text);

/** What names a project in a header. Most exporters send only ASCII there, so that other names give way to the id. */
const namedInHeader = ({ name, id }: Target): Named =>
  id === null || isAscii(name) ? { by: "name", text: name } : { by: "id", text: id };

/** What to do first where only a header names a project that has no id yet. */
const firstOf = ({ name, id }: Target): string =>
  id === null && !isAscii(name)
    ? " Headers hold only ASCII here, so make this project first: the code then names it by its id."
    : "";

/** Where spans go. */
function parentOf(project: Target): string {
  const { by, text } = namedInHeader(project);
  return `project_${by}:${text}`;
}

/** What stands where the key belongs. A key itself never enters the code. */
const KEY_PLACEHOLDER = "sk-...";

export const environment = (origin: string): string =>
  [
    `export BRAINTRUST_API_KEY=${KEY_PLACEHOLDER}`,
    `export BRAINTRUST_API_URL=${shellQuoted(origin)} BRAINTRUST_APP_URL=${shellQuoted(origin)}`,
  ].join("\n");

const otlp = (protocol: string, endpoint: string, parent: string): string => `export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=${protocol}
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${shellQuoted(endpoint)}
export OTEL_EXPORTER_OTLP_TRACES_HEADERS="authorization=Bearer%20$BRAINTRUST_API_KEY,x-bt-parent=${percentEncoded(parent)}"`;

/** The page is not told the address of gRPC. It has the certificate of this origin, if that has one. */
function grpcEndpoint(origin: string): string {
  const { protocol, hostname } = new URL(origin);
  return `${protocol}//${hostname}:${GRPC_PORT}`;
}

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

const sdkLessons = (project: Target): readonly Lesson[] => [
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
    id: "go",
    title: "Go",
    before:
      "Make a module with “go mod init answer” and install the SDK with “go get github.com/braintrustdata/braintrust-sdk-go”. Then run this file as main.go with “go run main.go”.",
    code: go(project.name),
  },
  {
    id: "ruby",
    title: "Ruby",
    before: "Install the SDK with “gem install braintrust”, then run this file. It needs Ruby 3.2 or later.",
    code: ruby(project.name),
  },
  {
    id: "java",
    title: "Java",
    before: `Add ${JAVA_SDK} to the dependencies of a build with Gradle or Maven, then run this class. It needs Java 17 or later.${firstOf(project)}`,
    code: java(namedInHeader(project)),
  },
  {
    id: "csharp",
    title: "C#",
    before: `Make a project with “dotnet new console” and install the SDK with “dotnet add package Braintrust.Sdk”. Then put this code into its Program.cs and start it with “dotnet run”. It needs .NET 8 or later.${firstOf(project)}`,
    code: csharp(namedInHeader(project)),
  },
];

const protocolLessons = (origin: string, project: Target): readonly Lesson[] => [
  {
    id: "otlp",
    title: "OTLP/HTTP",
    before: `Any OpenTelemetry SDK that starts with these variables sends its spans here.${firstOf(project)}`,
    code: otlp("http/protobuf", `${origin}/otel/v1/traces`, parentOf(project)),
  },
  {
    id: "grpc",
    title: "OTLP/gRPC",
    before: `These variables send the spans of any OpenTelemetry SDK over gRPC. The address is that of the setting http.otlp_listen: port ${GRPC_PORT} of this host, unless your operator has set another.${firstOf(project)}`,
    code: otlp("grpc", grpcEndpoint(origin), parentOf(project)),
  },
  {
    id: "curl",
    title: "cURL",
    before: "This sends one span in the JSON form of OTLP. It needs no SDK.",
    code: curl(origin, parentOf(project)),
  },
];

export const lessons = (origin: string, project: Target): readonly Lesson[] => [
  ...sdkLessons(project),
  ...protocolLessons(origin, project),
];
