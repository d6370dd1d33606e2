// What can be done on every screen.
import { toast } from "../design/Toast";
import { copyText } from "../lib/clipboard";
import type { Command } from "../lib/commands";
import { DENSITIES, prefer, preferences, THEMES } from "../lib/preferences";
import { location, navigate } from "../lib/router";
import { links } from "../routes";
import { leave } from "./leave";

export const THEME_TITLES = { system: "as the system", light: "light", dark: "dark" } as const;
export const DENSITY_TITLES = { compact: "compact", regular: "regular", roomy: "roomy" } as const;

/** The dialogs of the frame. */
export type Opened = "none" | "palette" | "keys" | "rail";

interface Surroundings {
  readonly organization: string | null;
  readonly hasSeveral: boolean;
  readonly served: readonly string[] | undefined;
  readonly open: (dialog: Opened) => void;
}

async function copyLink(): Promise<void> {
  const isDone = await copyText(window.location.origin + location.peek());
  toast(isDone ? "The link to this page is copied." : "The browser refused to copy.", !isDone);
}

function goCommands({ organization, hasSeveral, served }: Surroundings): readonly Command[] {
  const isServed = (part: string): boolean => served === undefined || served.includes(part);
  const go = (href: string) => (): void => navigate(href, "push");
  const list: Command[] = [];
  if (organization !== null && isServed("home")) {
    list.push({ id: "go.home", title: "Home", group: "Go", keys: "g h", run: go(links.home(organization)) });
  }
  if (organization !== null && isServed("welcome")) {
    list.push({ id: "go.welcome", title: "Send traces", group: "Go", run: go(links.welcome(organization)) });
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
    { id: "link", title: "Copy the link to this page", group: "Everywhere", keys: "y", run: () => void copyLink() },
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
