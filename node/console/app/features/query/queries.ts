// The requests of the query editor.
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { ApiError, withoutTail } from "../../lib/errors";
import { isRecord, list, record, text, textOrNull, type Fields } from "../../api/narrow";
import { called, literal, runQuery, readPage, type Page } from "../../api/query";

/** A page of a result, with what the server tells of how it came about. */
export interface Result extends Page {
  /** Bytes that were read from disk; null if the server does not say. */
  readonly readBytes: number | null;
}

export interface RunRequest {
  readonly query: string;
  readonly version: string;
  readonly cursor: string | null;
  readonly tzOffset: number;
}

function readResult(value: unknown): Result {
  const state = record(value, "query result")["realtime_state"];
  const bytes = isRecord(state) ? state["read_bytes"] : null;
  return { ...readPage(value), readBytes: typeof bytes === "number" ? bytes : null };
}

/** The body of a call that runs a query, without its format. */
export const bodyOf = ({ query, version, cursor, tzOffset }: RunRequest): Fields => ({
  query,
  ...(version === "" ? {} : { version }),
  ...(cursor === null ? {} : { cursor }),
  tz_offset: tzOffset,
});

export async function run(organization: string, request: RunRequest, signal: AbortSignal): Promise<Result> {
  const body = { ...bodyOf(request), fmt: "json", include_plan: true };
  return readResult(await call("POST", "/btql", { organization, body, signal }));
}

/** An object that queries can read. */
export interface Named {
  readonly id: string;
  readonly name: string;
  /** The project that it belongs to; empty for none. */
  readonly project: string;
}

function readNamed(value: unknown): Named {
  const object = record(value, "object");
  return { id: text(object, "id"), name: text(object, "name"), project: textOrNull(object, "project_id") ?? "" };
}

/** The first thousand experiments or datasets, the newest first. */
export const objectsQuery = (organization: string, kind: "experiment" | "dataset") =>
  queryOptions({
    queryKey: ["named", organization, kind],
    queryFn: async ({ signal }) => {
      const path = `/v1/${kind}?limit=1000&org_name=${encodeURIComponent(organization)}`;
      return list(record(await call("GET", path, { organization, signal }), kind), "objects").map(readNamed);
    },
    staleTime: 60_000,
  });

/** A path below a source's rows, with the kinds of its values and the commonest of them. */
export interface Field {
  readonly path: readonly string[];
  readonly types: readonly string[];
  readonly values: readonly (string | number | boolean)[];
}

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

/** Joins the rows of `infer`, of which there is one for each kind of a path's values. */
export function readFields(rows: readonly Fields[]): readonly Field[] {
  const fields = new Map<string, Field>();
  for (const row of rows) {
    const name = row["name"];
    const path = (Array.isArray(name) ? name : []).map(String);
    const key = JSON.stringify(path);
    const before = fields.get(key) ?? { path, types: [], values: [] };
    const tops = row["top_values"];
    const values = (Array.isArray(tops) ? tops : []).map((top: unknown) => (isRecord(top) ? top["value"] : null));
    const type = textOrNull(row, "type");
    fields.set(key, {
      path,
      types: type === null || type === "null" ? before.types : [...before.types, type],
      values: [...before.values, ...values.filter(isScalar)],
    });
  }
  return [...fields.values()].filter(({ path }) => path.length > 0);
}

/** The fields of a source, from a sample of its newest rows. */
export const fieldsQuery = (organization: string, source: string, ids: readonly string[]) =>
  queryOptions({
    queryKey: ["fields", organization, source, ids],
    queryFn: async ({ signal }) => {
      const query = { infer: [{ op: "star" }], from: called(source, ...ids.map((id) => literal(id))), inference_budget: 500 };
      return readFields((await runQuery(organization, query, { signal })).rows);
    },
    staleTime: 60_000,
    retry: false,
  });

/** Where and why a query cannot be parsed. */
export interface Fault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Whether the server parses queries without running them; unknown until it was asked once. */
let parses: boolean | null = null;

/** Parses a query without running it. Returns null if it is well-formed, and where the server cannot tell. */
export async function parse(organization: string, query: string, signal: AbortSignal): Promise<Fault | null> {
  if (parses === false) return null;
  try {
    const answer = record(await call("POST", "/console/parse", { organization, body: { query }, signal }), "parse");
    parses = true;
    const error = answer["error"];
    if (!isRecord(error)) return null;
    const [line, column] = [error["line"], error["column"]];
    return {
      line: typeof line === "number" ? line : 1,
      column: typeof column === "number" ? column : 1,
      message: withoutTail(text(error, "message")).replace(/^line \d+, column \d+: /, ""),
    };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 501)) parses = false;
    return null;
  }
}

