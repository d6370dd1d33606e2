// What can be done on every screen.
import { toast } from "../design/Toast";
import { copyText } from "../lib/clipboard";
import type { Command } from "../lib/commands";
import { frozenAddress } from "../lib/frozen";
import { PAGES } from "../lib/pages";
import { DENSITIES, prefer, preferences, THEMES } from "../lib/preferences";
import { location, navigate } from "../lib/router";
import { links } from "../routes";
import { leave } from "./leave";
import { isServed } from "./served";

export const THEME_TITLES = { system: "as the system", light: "light", dark: "dark" } as const;
export const DENSITY_TITLES = { compact: "compact", regular: "regular", roomy: "roomy" } as const;

/** The dialogs of the frame. */
export type Opened = "none" | "palette" | "keys" | "rail";

interface Surroundings {
  readonly organization: string | null;
  /** The project that the page is about, or an empty text. */
  readonly project: string;
  readonly hasSeveral: boolean;
  readonly served: readonly string[] | undefined;
  readonly open: (dialog: Opened) => void;
}

async function copyLink(isFrozen: boolean): Promise<void> {
  const frozen = isFrozen ? frozenAddress() : null;
  const isDone = await copyText(window.location.origin + (frozen ?? location.peek()));
  const words = frozen === null || frozen === location.peek() ? "" : " It keeps the present range of time.";
  toast(isDone ? `The link to this page is copied.${words}` : "The browser refused to copy.", !isDone);
}

function goCommands({ organization, project, hasSeveral, served }: Surroundings): readonly Command[] {
  const go = (href: string) => (): void => navigate(href, "push");
  const list: Command[] = [];
  if (organization !== null && isServed(served, "home")) {
    list.push({ id: "go.home", title: "Home", group: "Go", keys: "g h", run: go(links.home(organization)) });
  }
  if (organization !== null && project !== "" && isServed(served, "logs")) {
    list.push({ id: "go.logs", title: "Logs", group: "Go", keys: "g l", run: go(links.logs(organization, project)) });
  }
  if (organization !== null && project !== "" && isServed(served, "monitor")) {
    list.push({ id: "go.monitor", title: "Monitor", group: "Go", keys: "g m", run: go(links.monitor(organization, project)) });
  }
  if (organization !== null && project !== "" && isServed(served, "experiments")) {
    const href = links.experiments(organization, project);
    list.push({ id: "go.experiments", title: "Experiments", group: "Go", keys: "g e", run: go(href) });
  }
  if (organization !== null && project !== "" && isServed(served, "datasets")) {
    const href = links.datasets(organization, project);
    list.push({ id: "go.datasets", title: "Datasets", group: "Go", keys: "g d", run: go(href) });
  }
  if (organization !== null && isServed(served, "query")) {
    list.push({ id: "go.query", title: "Query", group: "Go", keys: "g q", run: go(links.query(organization)) });
  }
  if (organization !== null && isServed(served, "welcome")) {
    list.push({ id: "go.welcome", title: "Send traces", group: "Go", run: go(links.welcome(organization)) });
  }
  for (const { id, title, keys, within } of PAGES) {
    const isThere = within === "installation" || (organization !== null && (within === "organization" || project !== ""));
    if (!isThere || served === undefined || !isServed(served, id)) continue;
    const run = go(links.page(id, organization ?? "", project));
    list.push({ id: `go.${id}`, title, group: "Go", run, ...(keys === "" ? {} : { keys }) });
  }
  if (hasSeveral) list.push({ id: "go.start", title: "Organizations", group: "Go", run: go(links.start()) });
  return list;
}

function lookCommands(): readonly Command[] {
  return [
    ...THEMES.map((theme) => ({
      id: `theme.${theme}`,
      title: `Theme: ${THEME_TITLES[theme]}`,
      group: "Look",
      run: () => prefer({ theme }),
    })),
    ...DENSITIES.map((density) => ({
      id: `rows.${density}`,
      title: `Rows: ${DENSITY_TITLES[density]}`,
      group: "Look",
      run: () => prefer({ density }),
    })),
  ];
}

export function frameCommands(surroundings: Surroundings): readonly Command[] {
  const { open } = surroundings;
  return [
    ...goCommands(surroundings),
    { id: "palette", title: "Go to or do", group: "Everywhere", keys: "mod+k", run: () => open("palette") },
    { id: "keys", title: "Keys", group: "Everywhere", keys: "?", run: () => open("keys") },
    { id: "link", title: "Copy the link to this page", group: "Everywhere", keys: "y", run: () => void copyLink(true) },
    {
      id: "link.open",
      title: "Copy the link, its range moving with time",
      group: "Everywhere",
      keys: "Y",
      when: () => frozenAddress() !== null,
      run: () => void copyLink(false),
    },
    {
      id: "rail",
      title: "Fold or unfold the rail",
      group: "Everywhere",
      keys: "[",
      run: () => prefer({ railFolded: !preferences.peek().railFolded }),
    },
    {
      id: "zone",
      title: "Times in UTC or local",
      group: "Everywhere",
      keys: "u",
      run: () => prefer({ zone: preferences.peek().zone === "utc" ? "local" : "utc" }),
    },
    ...lookCommands(),
    { id: "leave", title: "Sign out", group: "Session", run: () => void leave(false) },
    { id: "leave.all", title: "Sign out everywhere", group: "Session", run: () => void leave(true) },
  ];
}
