// The addresses of a project's playgrounds, of one of them, and of one that is made of a span.
import { choiceParameter, textParameter } from "../../lib/address";
import { pageAddress, type PagePlace } from "../../lib/pages";

export interface PlaygroundState {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  /** The id of the playground; empty for the list. */
  readonly id: string;
  /** The column that is open; empty for none. */
  readonly variant: string;
  /** The row of the open cell; empty for none. */
  readonly row: string;
  /** Whether outputs are compared with those of the first column. */
  readonly isDiff: boolean;
  /** The id of the span's row that a playground is made of, and its trace; empty for none. */
  readonly span: string;
  readonly root: string;
  /** The experiment that has the span; empty for the project's logs. */
  readonly experiment: string;
}

export const playgroundDefaults = (organization: string, project: string, id = ""): PlaygroundState => ({
  organization,
  project,
  id,
  variant: "",
  row: "",
  isDiff: false,
  span: "",
  root: "",
  experiment: "",
});

const IS_DIFF = ["", "1"] as const;

/** Reads the address; null if there is no such page. */
export function readPlace({ organization, project, rest, query }: PagePlace): PlaygroundState | null {
  const [id = "", ...more] = rest;
  if (more.length > 0) return null;
  return {
    organization,
    project,
    id,
    variant: textParameter(query, "v"),
    row: textParameter(query, "r"),
    isDiff: choiceParameter(query, "diff", IS_DIFF, "") === "1",
    span: textParameter(query, "span"),
    root: textParameter(query, "root"),
    experiment: textParameter(query, "experiment"),
  };
}

export const writePlace = ({ organization, project, id, variant, row, isDiff, span, root, experiment }: PlaygroundState): string =>
  pageAddress("playgrounds", organization, project, id === "" ? [] : [id], [
    ["v", variant, ""],
    ["r", row, ""],
    ["diff", isDiff ? "1" : "", ""],
    ["span", span, ""],
    ["root", root, ""],
    ["experiment", experiment, ""],
  ]);
