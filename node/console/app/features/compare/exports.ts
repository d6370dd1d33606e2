// Files of the rows of all compared experiments, which the server writes.
import { prepareRows, type ComparisonRequest } from "../../api/comparison";
import type { ExportFormat } from "../../api/query";
import { exportOf } from "./requests";

/** The name of a file: letters, digits and dashes. */
export const fileName = (names: readonly string[]): string =>
  names.join("-").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 80) || "experiments";

/** Downloads the rows of the experiments that fulfil the filter. */
export async function exportRows(
  organization: string,
  request: ComparisonRequest,
  key: string,
  fmt: ExportFormat,
  names: readonly string[],
): Promise<void> {
  const filename = fileName(names);
  const options = { fmt, filename, version: request.version };
  const href = await prepareRows(organization, exportOf(request, key), options);
  const link = document.createElement("a");
  link.href = href;
  link.download = `${filename}.${fmt}`;
  link.click();
}
