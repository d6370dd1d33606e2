// Files that the browser saves, and what their formats say of them.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";

/** The content of the file that a click saves. */
export async function downloaded(page: Page, click: () => Promise<void>): Promise<Buffer> {
  const [download] = await Promise.all([page.waitForEvent("download"), click()]);
  const folder = await mkdtemp(join(tmpdir(), "flows-"));
  const path = join(folder, "file");
  await download.saveAs(path);
  const content = await readFile(path);
  await rm(folder, { recursive: true });
  return content;
}

const MAGIC = "PAR1";

/** The metadata at the end of a Parquet file, which names its columns. A file without it is no Parquet file. */
export function parquetFooter(file: Buffer): string {
  const magics = [file.subarray(0, 4).toString("latin1"), file.subarray(-4).toString("latin1")];
  if (magics.some((magic) => magic !== MAGIC)) throw new Error(`no Parquet file: ${magics.join(" ")}`);
  const length = file.readUInt32LE(file.length - 8);
  if (length === 0 || length > file.length - 12) throw new Error(`no footer of ${length} bytes in ${file.length}`);
  return file.subarray(file.length - 8 - length, -8).toString("latin1");
}
