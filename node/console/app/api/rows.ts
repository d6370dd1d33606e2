// Rows of logs as lists show them: the unknown fields of an answer are narrowed here, once.
import { isRecord, numberOrNull, textOrNull, type Fields } from "./narrow";

export interface NamedScore {
  readonly name: string;
  readonly value: number | null;
}

/** A trace or a span in a list. Its values may be cut by the server, which makes texts of them. */
export interface LogRow {
  /** The id of the row; of a trace the id of its root row, or an empty text if that never came. */
  readonly id: string;
  readonly spanId: string;
  readonly rootSpanId: string;
  readonly created: string | null;
  /** The key by which rows are ordered as they arrived. */
  readonly arrival: string | null;
  readonly transaction: string;
  readonly name: string | null;
  readonly type: string | null;
  readonly input: unknown;
  readonly output: unknown;
  readonly expected: unknown;
  readonly error: unknown;
  readonly metadata: unknown;
  /** The text of the last message, where input or output is a chat. */
  readonly inputText: string | null;
  readonly outputText: string | null;
  readonly scores: readonly NamedScore[];
  readonly tags: readonly string[];
  readonly tokens: number | null;
  /** In dollars. */
  readonly cost: number | null;
  /** In milliseconds. */
  readonly duration: number | null;
  readonly model: string | null;
  /** Whether the span failed, or any span of the trace. */
  readonly isFailed: boolean;
  /** Whether the root has started and not ended. */
  readonly isRunning: boolean;
  /** The values of the expressions that were asked for besides, in their order. */
  readonly custom: readonly unknown[];
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

/** The scores of a row. One that was taken away is null, and is none. */
function scoresOf(value: unknown): readonly NamedScore[] {
  return Object.entries(fieldsOf(value))
    .filter(([, score]) => score !== null)
    .map(([name, score]) => ({ name, value: numberOrNull(score) }));
}

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

/** The alias of an expression that is asked for besides the columns of every row. */
export const customAlias = (index: number): string => `c${index}`;

export function readLogRow(row: Fields, customs: number): LogRow {
  const attributes = fieldsOf(row["span_attributes"]);
  const type = fieldsOf(row["span_type_info"]);
  const duration = numberOrNull(row["duration"]);
  const error = row["error"] ?? null;
  return {
    id: textOrNull(row, "id") ?? "",
    spanId: textOrNull(row, "span_id") ?? "",
    rootSpanId: textOrNull(row, "root_span_id") ?? "",
    created: textOrNull(row, "created"),
    arrival: textOrNull(row, "_pagination_key"),
    transaction: textOrNull(row, "_xact_id") ?? "",
    name: textOrNull(attributes, "name") ?? textOrNull(type, "name"),
    type: textOrNull(attributes, "type") ?? textOrNull(type, "type"),
    input: row["input"] ?? null,
    output: row["output"] ?? null,
    expected: row["expected"] ?? null,
    error,
    metadata: row["metadata"] ?? null,
    inputText: textOrNull(row, "input_text"),
    outputText: textOrNull(row, "output_text"),
    scores: scoresOf(row["scores"]),
    tags: textsOf(row["tags"]),
    tokens: numberOrNull(row["tokens"]),
    cost: numberOrNull(row["cost"]),
    duration: duration === null ? null : duration * 1000,
    model: textOrNull(row, "model"),
    isFailed: error !== null || type["has_error"] === true,
    isRunning: type["in_progress"] === true,
    custom: Array.from({ length: customs }, (_, index) => row[customAlias(index)] ?? null),
  };
}

/** A group of rows with what is counted of it. */
export interface LogGroup {
  readonly value: unknown;
  readonly count: number;
  readonly errors: number;
  readonly duration: number | null;
  readonly tokens: number | null;
  readonly cost: number | null;
  readonly newest: string | null;
}

export function readLogGroup(row: Fields): LogGroup {
  const duration = numberOrNull(row["duration"]);
  return {
    value: row["value"] ?? null,
    count: numberOrNull(row["n"]) ?? 0,
    errors: numberOrNull(row["errors"]) ?? 0,
    duration: duration === null ? null : duration * 1000,
    tokens: numberOrNull(row["tokens"]),
    cost: numberOrNull(row["cost"]),
    newest: textOrNull(row, "newest"),
  };
}
