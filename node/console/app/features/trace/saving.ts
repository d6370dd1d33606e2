// Files of a trace: one span as the page has read it, or all spans as the server writes them.
import { compared, ident, literal, prepareDownload, sourceOf } from "../../api/query";
import { readSpan, type SpanPlace } from "../../api/spans";
import { printJson } from "../../lib/json";

const SHOWN_MS = 60_000;

function download(href: string, filename: string): void {
  const link = document.createElement("a");
  link.href = href;
  link.download = filename;
  link.click();
}

/** A name that every system takes as that of a file. */
const fileName = (text: string): string => text.replace(/[^\w.-]+/g, "-").slice(0, 80) || "trace";

/** Downloads one span with all that it has. */
export async function saveSpan(place: SpanPlace, id: string): Promise<void> {
  const text = printJson(await readSpan(place, id));
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  download(address, `${fileName(id)}.json`);
  window.setTimeout(() => URL.revokeObjectURL(address), SHOWN_MS);
}

/** Downloads all spans of a trace with all that they have, one in each line. */
export async function saveTrace(place: SpanPlace): Promise<void> {
  const filename = fileName(place.root);
  const query = {
    select: [{ op: "star" }],
    from: sourceOf(place.source.kind, place.source.id),
    filter: [compared("eq", ident("root_span_id"), literal(place.root))],
  };
  const address = await prepareDownload(place.organization, query, { fmt: "jsonl", filename, version: place.version });
  download(address, `${filename}.jsonl`);
}
