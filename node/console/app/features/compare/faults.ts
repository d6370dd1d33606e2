// What of the request the server refuses.
import { faultOf } from "../../api/query";
import { ApiError, withoutTail } from "../../lib/errors";

export interface Fault {
  readonly at: "filter" | "group" | "other";
  readonly message: string;
}

/** Says where the server found a fault; null if the request failed for another reason. */
export function requestFault(error: unknown, filter: string, group: string): Fault | null {
  if (!(error instanceof ApiError) || error.status !== 400) return null;
  const fault = faultOf(error);
  if (fault === null) {
    const message = withoutTail(error.message);
    return filter === "" && group === "" ? null : { at: "other", message };
  }
  const isGroup = fault.part.startsWith("select") || filter.trim() === "";
  const where = fault.line > 1 ? `line ${fault.line}, column ${fault.column}` : `column ${fault.column}`;
  return { at: isGroup && group !== "" ? "group" : "filter", message: `At ${where}: ${fault.message}` };
}
