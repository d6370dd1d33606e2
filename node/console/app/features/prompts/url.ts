// The addresses of a project's prompts and functions, and of one of them.
import { choiceParameter, textParameter } from "../../lib/address";
import { pageAddress, type PagePlace } from "../../lib/pages";

export const KINDS = ["prompts", "functions"] as const;

/** Prompts and functions are records of one kind that are listed apart. */
export type Kind = (typeof KINDS)[number];

export const PANELS = ["run", "versions", "use"] as const;

export type PanelName = (typeof PANELS)[number];

export const LOOKS = ["form", "json", "yaml"] as const;

/** How the content is shown. */
export type Look = (typeof LOOKS)[number];

export interface PromptsState {
  readonly kind: Kind;
  readonly organization: string;
  readonly project: string;
  /** The slug of the open one; empty for the list. */
  readonly slug: string;
  /** What the names in the list contain. */
  readonly filter: string;
  /** The version that is shown; empty for the newest. */
  readonly version: string;
  /** The version that the shown one is compared with; empty for none. */
  readonly compare: string;
  /** The environment whose version is shown; empty for none. */
  readonly environment: string;
  readonly panel: PanelName;
  readonly look: Look;
}

export const promptsDefaults = (kind: Kind, organization: string, project: string, slug = ""): PromptsState => ({
  kind,
  organization,
  project,
  slug,
  filter: "",
  version: "",
  compare: "",
  environment: "",
  panel: kind === "prompts" ? "run" : "versions",
  look: "form",
});

/** Reads an address; null if it has more segments than the screens know. */
export function readPromptsPlace({ page, organization, project, rest, query }: PagePlace): PromptsState | null {
  const kind = KINDS.find((one) => one === page.id);
  if (kind === undefined || rest.length > 1) return null;
  const defaults = promptsDefaults(kind, organization, project, rest[0] ?? "");
  if (defaults.slug === "") return { ...defaults, filter: textParameter(query, "q") };
  return {
    ...defaults,
    version: textParameter(query, "version"),
    compare: textParameter(query, "cmp"),
    environment: textParameter(query, "env"),
    panel: choiceParameter(query, "tab", PANELS, defaults.panel),
    look: choiceParameter(query, "as", LOOKS, "form"),
  };
}

export function promptsAddress(state: PromptsState): string {
  const { kind, organization, project, slug } = state;
  if (slug === "") return pageAddress(kind, organization, project, [], [["q", state.filter, ""]]);
  return pageAddress(kind, organization, project, [slug], [
    ["version", state.version, ""],
    ["cmp", state.compare, ""],
    ["env", state.environment, ""],
    ["tab", state.panel, promptsDefaults(kind, "", "").panel],
    ["as", state.look, "form"],
  ]);
}
