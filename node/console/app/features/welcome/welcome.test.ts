// Tests what is said of traces that arrive, and the code that sends them.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Project } from "../../api/schema";
import { AGENTS, connections } from "./agents";
import { arrivalOf } from "./arrival";
import { environment, lessons, type Lesson, type Target } from "./snippets";
import { LANGUAGES, type Language } from "./url";

const project = (name: string, newest: string | null): Project => ({ id: name, name, newest, rows: 0, errors: 0 });
const OLD = project("old", "2026-05-04T10:00:00Z");
const NEW = project("new", "2026-05-04T11:00:00Z");
const BARE = project("bare", null);

test("nothing has arrived while no project has a trace", () => {
  expect(arrivalOf([], "")).toEqual({ kind: "waiting" });
  expect(arrivalOf([BARE], "bare")).toEqual({ kind: "waiting" });
});

test("the newest trace is shown, and the named project goes before it", () => {
  expect(arrivalOf([OLD, BARE, NEW], "")).toEqual({ kind: "here", project: NEW });
  expect(arrivalOf([OLD, NEW], "old")).toEqual({ kind: "here", project: OLD });
  expect(arrivalOf([OLD, NEW, BARE], "bare")).toEqual({ kind: "elsewhere", project: NEW });
  expect(arrivalOf([OLD], "not made yet")).toEqual({ kind: "elsewhere", project: OLD });
});

const ORIGIN = "https://assay.test:8443";
const HOSTILE = `it's "$(id)" \\ \`x\` %41 #{x} \\u0022`;

const codeOf = (project: Target, id: Language): string => lessonOf(project, id).code;

function lessonOf(project: Target, id: Language): Lesson {
  const lesson = lessons(ORIGIN, project).find((one) => one.id === id);
  if (lesson === undefined) throw new Error(`there is no lesson of ${id}`);
  return lesson;
}

test("each language has one lesson, in the order of the tabs", () => {
  expect(lessons(ORIGIN, { name: "bot", id: null }).map((lesson) => lesson.id)).toEqual(LANGUAGES);
});

test("no lesson holds a key, and each names the server or leaves it to the variables", () => {
  expect(environment(ORIGIN)).toContain(`BRAINTRUST_API_URL=${ORIGIN}`);
  const addresses = new Map<Language, string>([["otlp", ORIGIN], ["grpc", "https://assay.test:4317"], ["curl", ORIGIN]]);
  for (const { id, code } of lessons(ORIGIN, { name: "bot", id: null })) {
    expect(code).not.toContain("sk-");
    expect(code).toContain(addresses.get(id) ?? "bot");
    expect(code.includes("://")).toBe(addresses.has(id));
  }
});

test("each agent has one connection to this origin, without a key", () => {
  expect(connections(ORIGIN).map(({ id }) => id)).toEqual(AGENTS);
  for (const { code } of connections(ORIGIN)) {
    expect(code).toContain(`${ORIGIN}/mcp`);
    expect(code).not.toContain("sk-");
  }
});

test("every program keeps a hostile name as a name", () => {
  const named = { name: HOSTILE, id: null };
  const quoted = JSON.stringify(HOSTILE);
  expect(codeOf(named, "python")).toContain(`project=${quoted})`);
  expect(codeOf(named, "typescript")).toContain(`projectName: ${quoted} }`);
  expect(codeOf(named, "go")).toContain(`braintrust.WithProject(${quoted})`);
  expect(codeOf(named, "ruby")).toContain(`default_project: ${quoted.replace("#{", "\\#{")})`);
  expect(codeOf(named, "java")).toContain(`.defaultProjectName(${quoted})`);
  expect(codeOf(named, "csharp")).toContain(`("BRAINTRUST_DEFAULT_PROJECT_NAME", ${quoted})`);
});

test.each(["otlp", "grpc"] as const)("the variables of %s keep a hostile name as a name", (id) => {
  const code = codeOf({ name: HOSTILE, id: null }, id);
  const headers = execFileSync("sh", ["-c", `BRAINTRUST_API_KEY=k\n${code}\nprintf %s "$OTEL_EXPORTER_OTLP_TRACES_HEADERS"`], {
    encoding: "utf8",
  });
  expect(decodeURIComponent(headers)).toBe(`authorization=Bearer k,x-bt-parent=project_name:${HOSTILE}`);
});

test("the call of cURL keeps a hostile name as a name", () => {
  const curl = codeOf({ name: HOSTILE, id: null }, "curl");
  const sent = execFileSync("sh", ["-c", `curl() { for a; do printf '%s\\n' "$a"; done; cat; }\n${curl}`], {
    encoding: "utf8",
    env: { ...process.env, BRAINTRUST_API_KEY: "k" },
  });
  expect(sent).toContain(`\nx-bt-parent: project_name:${HOSTILE}\n`);
  const body: unknown = JSON.parse(sent.slice(sent.indexOf('{"resourceSpans"')));
  expect(JSON.stringify(body)).toMatch(/"traceId":"[0-9a-f]{32}","spanId":"[0-9a-f]{16}"/);
});

test("the address of gRPC has the scheme and the host of the page", () => {
  const endpoint = (origin: string): string | undefined =>
    lessons(origin, { name: "bot", id: null }).find((one) => one.id === "grpc")?.code.split("\n")[1];
  expect(endpoint("http://localhost:8000")).toBe("export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4317");
  expect(endpoint("https://assay.test")).toBe("export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://assay.test:4317");
  expect(endpoint("http://[::1]:8000")).toBe("export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT='http://[::1]:4317'");
});

test("headers name a project by its id where its name is not ASCII", () => {
  const project = { name: "協会", id: "3ee2" };
  for (const id of ["python", "typescript", "go", "ruby"] as const) expect(codeOf(project, id)).toContain("協会");
  expect(codeOf(project, "java")).toContain('.defaultProjectId("3ee2")');
  expect(codeOf(project, "csharp")).toContain('("BRAINTRUST_DEFAULT_PROJECT_ID", "3ee2")');
  for (const id of ["otlp", "grpc"] as const) expect(codeOf(project, id)).toContain("x-bt-parent=project_id%3A3ee2");
  expect(codeOf(project, "curl")).toContain("x-bt-parent: project_id:3ee2");
});

test("a project that only its id can name in headers has to be there first", () => {
  const says = (project: Target): readonly Language[] =>
    LANGUAGES.filter((id) => lessonOf(project, id).before.includes("make this project first"));
  expect(says({ name: "協会", id: null })).toEqual(["java", "csharp", "otlp", "grpc"]);
  expect(says({ name: "協会", id: "3ee2" })).toEqual([]);
  expect(says({ name: HOSTILE, id: null })).toEqual([]);
});
