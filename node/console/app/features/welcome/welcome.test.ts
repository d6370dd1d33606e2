// Tests what is said of traces that arrive, and the code that sends them.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Project } from "../../api/schema";
import { arrivalOf } from "./arrival";
import { environment, lessons } from "./snippets";

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
const HOSTILE = `it's "$(id)" \\ \`x\` %41`;

test("no lesson holds a key, and all name the server or its variables", () => {
  expect(environment(ORIGIN)).toContain(`BRAINTRUST_API_URL=${ORIGIN}`);
  const codes = lessons(ORIGIN, { name: "bot", id: null }).map((lesson) => lesson.code);
  expect(codes).toHaveLength(4);
  for (const code of codes) expect(code).not.toMatch(/sk-\w/);
});

test("every lesson keeps a hostile name as a name", () => {
  const [python, typescript, otlp, curl] = lessons(ORIGIN, { name: HOSTILE, id: null }).map((lesson) => lesson.code);
  expect(python).toContain(`project=${JSON.stringify(HOSTILE)})`);
  expect(typescript).toContain(`projectName: ${JSON.stringify(HOSTILE)} }`);
  const headers = execFileSync("sh", ["-c", `BRAINTRUST_API_KEY=k\n${otlp}\nprintf %s "$OTEL_EXPORTER_OTLP_TRACES_HEADERS"`], {
    encoding: "utf8",
  });
  expect(decodeURIComponent(headers)).toBe(`authorization=Bearer k,x-bt-parent=project_name:${HOSTILE}`);
  const sent = execFileSync("sh", ["-c", `curl() { for a; do printf '%s\\n' "$a"; done; cat; }\n${curl}`], {
    encoding: "utf8",
    env: { ...process.env, BRAINTRUST_API_KEY: "k" },
  });
  expect(sent).toContain(`\nx-bt-parent: project_name:${HOSTILE}\n`);
  const body: unknown = JSON.parse(sent.slice(sent.indexOf("{")));
  expect(JSON.stringify(body)).toMatch(/"traceId":"[0-9a-f]{32}","spanId":"[0-9a-f]{16}"/);
});

test("headers name a project by its id where its name is not ASCII", () => {
  const codes = lessons(ORIGIN, { name: "協会", id: "3ee2" }).map((lesson) => lesson.code);
  expect(codes[0]).toContain("協会");
  expect(codes[2]).toContain("x-bt-parent=project_id%3A3ee2");
  expect(codes[3]).toContain("x-bt-parent: project_id:3ee2");
});
