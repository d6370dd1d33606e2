// The menu of an open trace: what can be copied from it, saved, and read by a program.
import { problemOf } from "../../lib/errors";
import { aboutQuery, cache } from "../../api/queries";
import { readSpan, type SpanHead } from "../../api/spans";
import type { MenuItem } from "../../design/Menu";
import { toast } from "../../design/Toast";
import { copyText } from "../../lib/clipboard";
import { printJson } from "../../lib/json";
import { pageAddress } from "../../lib/pages";
import { navigate } from "../../lib/router";
import type { TracePanelProps } from "../../lib/trace";
import { asCurl, asPython, asTypeScript, callAsCurl, callAsPython, callAsTypeScript, modelCallOf } from "./detail/actions";
import { saveSpan, saveTrace } from "./saving";
import { traceDefaults, traceUrl } from "./url";
import type { OpenTrace } from "./useTrace";

async function copy(what: string, text: string | Promise<string>): Promise<void> {
  const isDone = await copyText(await text);
  toast(isDone ? `${what} copied` : `${what} could not be copied: the browser refused`, !isDone);
}

/** Does something, and says why it failed if it does. */
const attempt = (what: string, run: () => Promise<void>) => (): void => {
  run().catch((error: unknown) => toast(`${what} failed: ${problemOf(error, Date.now()).text}`, true));
};

/** The address of the trace's own page, with the selected span. */
export function pageOf({ organization, project, source, root, view, version }: TracePanelProps): string {
  const experiment = source.kind === "experiment" ? source.id : "";
  return traceUrl.write({ ...traceDefaults(organization, project.name, root), experiment, view, version });
}

/** Items that copy the model call of a span, through the gateway of this server. Only spans of models have them. */
function modelCallItems(place: OpenTrace["place"], head: SpanHead | undefined): readonly MenuItem[] {
  if (head?.type !== "llm") return [];
  const writers = [
    ["cURL command", callAsCurl],
    ["Python program", callAsPython],
    ["TypeScript program", callAsTypeScript],
  ] as const;
  return writers.map(([title, write], index): MenuItem => ({
    id: `call${index}`,
    title,
    ...(index === 0 ? { heading: "Copy the model call" } : {}),
    run: attempt("Copying", async () => {
      const row = await readSpan(place, head.id);
      const body = row === null ? null : modelCallOf(row);
      if (body === null) throw new Error("The span has no model and list of messages, so that its call cannot be repeated.");
      await copy("Model call", write(window.location.origin, body));
    }),
  }));
}

/** The dialogs that the menu opens. */
interface Doors {
  readonly add: () => void;
  readonly chooseVersion: () => void;
}

/** The item that opens the call of a model in a playground, where the server serves them. */
function playgroundItems(props: TracePanelProps, head: SpanHead | undefined): readonly MenuItem[] {
  const { organization, project, source, root } = props;
  const isServed = cache.getQueryData(aboutQuery.queryKey)?.served.includes("playgrounds") === true;
  if (!isServed || head?.type !== "llm" || source.kind === "playground_logs") return [];
  const experiment = source.kind === "experiment" ? source.id : "";
  const href = pageAddress("playgrounds", organization, project.name, [], [
    ["span", head.id, ""],
    ["root", root, ""],
    ["experiment", experiment, ""],
  ]);
  return [{ id: "playground", title: "Open in playground", run: () => navigate(href, "push") }];
}

export function itemsOf(
  props: TracePanelProps,
  trace: OpenTrace,
  head: SpanHead | undefined,
  { add, chooseVersion }: Doors,
): readonly MenuItem[] {
  const { origin } = window.location;
  const { place } = trace;
  const id = head?.id ?? "";
  const asJson = async (): Promise<string> => printJson(await readSpan(place, id));
  return [
    ...(place.version === "" ? [{ id: "dataset", title: "Add the span to a dataset", run: add }] : []),
    ...(props.onVersion === undefined ? [] : [{ id: "version", title: "Show an earlier state", run: chooseVersion }]),
    ...playgroundItems(props, head),
    { id: "link", heading: "Copy", title: "Link to the span", run: attempt("Copying", () => copy("Link", origin + pageOf(props))) },
    { id: "id", title: "Id of the span", run: attempt("Copying", () => copy("Id", id)) },
    { id: "root", title: "Id of the trace", run: attempt("Copying", () => copy("Id", place.root)) },
    { id: "json", title: "Span in JSON", run: attempt("Copying", () => copy("Span", asJson())) },
    { id: "curl", heading: "Copy code that reads the span", title: "cURL command", run: attempt("Copying", () => copy("Command", asCurl(origin, place, id))) },
    { id: "python", title: "Python program", run: attempt("Copying", () => copy("Program", asPython(origin, place, id))) },
    { id: "typescript", title: "TypeScript program", run: attempt("Copying", () => copy("Program", asTypeScript(origin, place, id))) },
    ...modelCallItems(place, head),
    { id: "save", heading: "Download", title: "Span in JSON", run: attempt("The download", () => saveSpan(place, id)) },
    { id: "saveAll", title: "All spans, one in each line", run: attempt("The download", () => saveTrace(place)) },
  ];
}
