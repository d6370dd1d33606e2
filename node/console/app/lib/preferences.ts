// What a person has chosen about the look and the keys of the console, kept in this browser.
import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export const DENSITIES = ["compact", "regular", "roomy"] as const;
export const ZONES = ["local", "utc"] as const;

export type Theme = (typeof THEMES)[number];
export type Density = (typeof DENSITIES)[number];
export type Zone = (typeof ZONES)[number];

export interface Preferences {
  readonly theme: Theme;
  readonly density: Density;
  readonly zone: Zone;
  readonly railFolded: boolean;
  /** Whether single letters are shortcuts. */
  readonly singleKeys: boolean;
}

const DEFAULTS: Preferences = {
  theme: "system",
  density: "regular",
  zone: "local",
  railFolded: false,
  singleKeys: true,
};

const STORED_AS = "assay-console";

const choice = <Choice extends string>(choices: readonly Choice[], value: unknown, otherwise: Choice): Choice =>
  choices.find((known) => known === value) ?? otherwise;

const flag = (value: unknown, otherwise: boolean): boolean => (typeof value === "boolean" ? value : otherwise);

/** Reads preferences from their stored text. What is missing or unknown becomes the default. */
export function parsePreferences(text: string | null): Preferences {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? "{}");
  } catch {
    return DEFAULTS;
  }
  if (typeof stored !== "object" || stored === null) return DEFAULTS;
  const fields = new Map<string, unknown>(Object.entries(stored));
  return {
    theme: choice(THEMES, fields.get("theme"), DEFAULTS.theme),
    density: choice(DENSITIES, fields.get("density"), DEFAULTS.density),
    zone: choice(ZONES, fields.get("zone"), DEFAULTS.zone),
    railFolded: flag(fields.get("railFolded"), DEFAULTS.railFolded),
    singleKeys: flag(fields.get("singleKeys"), DEFAULTS.singleKeys),
  };
}

export const preferences = signal<Preferences>(DEFAULTS);

/** Changes some preferences and keeps them. A browser that refuses to store them forgets them with the page. */
export function prefer(changed: Partial<Preferences>): void {
  preferences.value = { ...preferences.peek(), ...changed };
  try {
    localStorage.setItem(STORED_AS, JSON.stringify(preferences.peek()));
  } catch {
    return;
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(STORED_AS);
  } catch {
    return null;
  }
}

/** Reads a preference of one screen that is too long for the common record, such as its open tabs; null if there is none. */
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(`${STORED_AS}.${name}`);
  } catch {
    return null;
  }
}

/** Keeps a preference of one screen. A browser that refuses to store it forgets it with the page. */
export function remember(name: string, text: string): void {
  try {
    localStorage.setItem(`${STORED_AS}.${name}`, text);
  } catch {
    return;
  }
}

/** Loads the preferences and keeps the page's theme and density in step with them. */
export function startPreferences(): void {
  preferences.value = parsePreferences(stored());
  window.addEventListener("storage", (event) => {
    if (event.key === STORED_AS) preferences.value = parsePreferences(event.newValue);
  });
  effect(() => {
    const { theme, density } = preferences.value;
    document.documentElement.dataset["theme"] = theme;
    document.documentElement.dataset["density"] = density;
  });
}
