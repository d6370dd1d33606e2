// What went wrong with a query of the list, in the words of the screen: the filter, a column, or the grouping.
import { ApiError, problemOf } from "../../lib/errors";
import { faultOf } from "../../api/query";
import type { Problem } from "../../lib/problem";
import { basicCount, type LogsRequest } from "./request";

/** The column whose expression the server cannot parse; null if that is not what failed. */
export function faultyColumn(error: unknown, request: LogsRequest): string | null {
  const index = /^select\[(\d+)\]/.exec(faultOf(error)?.part ?? "")?.[1];
  return index === undefined ? null : (request.customs[Number(index) - basicCount(request.shape)] ?? null);
}

/** Whether the server cannot parse the filter. */
export const isFilterFaulty = (error: unknown): boolean => faultOf(error)?.part.startsWith("filter") === true;

/** Whether a query needs more memory than one may take. */
export const isTooMuch = (error: unknown): boolean => error instanceof ApiError && error.status === 413;

export const NEEDS_LESS = "A shorter range or a narrower filter needs less.";

/** Describes a failure of the list. */
export function problemIn(error: unknown, present: number, request: LogsRequest): Problem {
  const problem = problemOf(error, present);
  const fault = faultOf(error);
  if (fault === null) return problem;
  const where = fault.line > 1 ? `Line ${fault.line}, column ${fault.column}` : `Column ${fault.column}`;
  const named = (title: string): Problem => ({ ...problem, title, text: `${where}: ${fault.message}.`, wayOut: "none" });
  if (isFilterFaulty(error)) return named("The filter cannot be understood");
  if (fault.part.startsWith("dimensions")) return named(`The grouping by ${request.group} cannot be understood`);
  const column = faultyColumn(error, request);
  return column === null ? problem : named(`The column ${column} cannot be understood`);
}
