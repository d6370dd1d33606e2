// The address of a project's monitor: the dashboard, and what differs from it.
import { isReserved, organizationAddress, type Codec } from "../../lib/address";

export const SHAPES = ["traces", "spans"] as const;

/** Whether traces or spans are counted. */
export type MonitorShape = (typeof SHAPES)[number];

export const REFRESHES = ["", "10s", "1m"] as const;

/** How often the cards are read again; empty for never. */
export type Refresh = (typeof REFRESHES)[number];

/** What a dashboard keeps. */
export interface Settings {
  /** The range of time, in the form of `lib/range`. */
  readonly range: string;
  /** The path or expression by which lines are grouped; empty for none. */
  readonly group: string;
  /** The expression that rows fulfil; empty for all. */
  readonly filter: string;
  readonly shape: MonitorShape;
  /** The cards in their order, as `cards.ts` writes them; empty for all that there are. */
  readonly cards: string;
}

/** What the address says otherwise than the dashboard. */
export type Overrides = { readonly [Key in keyof Settings]?: Settings[Key] };

export interface MonitorState {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  /** The id of the dashboard; empty for the built-in one. */
  readonly view: string;
  readonly overrides: Overrides;
  readonly refresh: Refresh;
  /** The version as of which rows are read, in the form of `lib/version`; empty for now. */
  readonly version: string;
}

export const BUILT_IN: Settings = { range: "24h", group: "", filter: "", shape: "traces", cards: "" };

export const monitorDefaults = (organization: string, project: string): MonitorState => ({
  organization,
  project,
  view: "",
  overrides: {},
  refresh: "",
  version: "",
});

const KEYS = { range: "t", group: "g", filter: "q", shape: "shape", cards: "cards" } as const;

/** What a parameter that is not there is written as; no address holds it. */
const ABSENT = "\u0000";

export function overridesOf(query: URLSearchParams): Overrides {
  const shape = SHAPES.find((one) => one === query.get(KEYS.shape));
  const [range, group, filter, cards] = [KEYS.range, KEYS.group, KEYS.filter, KEYS.cards].map((key) => query.get(key));
  return {
    ...(range === null || range === undefined || range === "" ? {} : { range }),
    ...(group === null || group === undefined ? {} : { group }),
    ...(filter === null || filter === undefined ? {} : { filter }),
    ...(shape === undefined ? {} : { shape }),
    ...(cards === null || cards === undefined ? {} : { cards }),
  };
}

/** The settings of a dashboard with what the address says otherwise. */
export const settingsOf = (base: Settings, overrides: Overrides): Settings => ({ ...base, ...overrides });

/** What settings say otherwise than a dashboard, so that equal settings have equal addresses. */
export function overridden(base: Settings, { range, group, filter, shape, cards }: Settings): Overrides {
  return {
    ...(range === base.range ? {} : { range }),
    ...(group === base.group ? {} : { group }),
    ...(filter === base.filter ? {} : { filter }),
    ...(shape === base.shape ? {} : { shape }),
    ...(cards === base.cards ? {} : { cards }),
  };
}

export const isOverridden = (overrides: Overrides): boolean => Object.keys(overrides).length > 0;

export const monitorUrl: Codec<MonitorState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, p, project, word, view = "", ...rest] = segments;
    if (organization === undefined || project === undefined || isReserved(rawFirst)) return null;
    if (p !== "p" || word !== "monitor" || rest.length > 0) return null;
    const read = overridesOf(query);
    const refresh = REFRESHES.find((one) => one === query.get("every")) ?? "";
    const overrides = view === "" ? overridden(BUILT_IN, settingsOf(BUILT_IN, read)) : read;
    return { organization, project, view, overrides, refresh, version: query.get("version") ?? "" };
  },
  write: ({ organization, project, view, overrides, refresh, version }) =>
    organizationAddress(organization, ["p", project, "monitor", ...(view === "" ? [] : [view])], [
      ["q", overrides.filter ?? ABSENT, ABSENT],
      ["t", overrides.range ?? ABSENT, ABSENT],
      ["g", overrides.group ?? ABSENT, ABSENT],
      ["shape", overrides.shape ?? ABSENT, ABSENT],
      ["cards", overrides.cards ?? ABSENT, ABSENT],
      ["every", refresh, ""],
      ["version", version, ""],
    ]),
};
