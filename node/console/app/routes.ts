// The route table: which screen an address means, what the screen is called, and how addresses are written.
import { homeDefaults, homeUrl, prefetchHome, type HomeState } from "./features/home";
import { signInUrl, type SignInState } from "./features/signin";
import { startUrl } from "./features/start";
import { welcomeDefaults, welcomeUrl, type WelcomeState } from "./features/welcome";
import { readAddress, type Address } from "./lib/address";
import type { Links } from "./lib/links";

/** A screen with its state. */
export type Place =
  | { readonly at: "signin"; readonly state: SignInState }
  | { readonly at: "welcome"; readonly state: WelcomeState }
  | { readonly at: "start" }
  | { readonly at: "home"; readonly state: HomeState }
  | { readonly at: "design" }
  | { readonly at: "unknown"; readonly organization: string };

type Reader = (address: Address) => Place | null;

const READERS: readonly Reader[] = [
  (address) => {
    const state = signInUrl.read(address);
    return state && { at: "signin", state };
  },
  (address) => {
    const state = welcomeUrl.read(address);
    return state && { at: "welcome", state };
  },
  (address) => startUrl.read(address) && { at: "start" },
  ({ rawFirst }) => (import.meta.env.DEV && rawFirst === "_design" ? { at: "design" } : null),
  (address) => {
    const state = homeUrl.read(address);
    return state && { at: "home", state };
  },
];

/** The screen that an address means. */
export function placeOf(href: string): Place {
  const address = readAddress(href);
  if (address === null) return { at: "unknown", organization: "" };
  for (const read of READERS) {
    const place = read(address);
    if (place !== null) return place;
  }
  return { at: "unknown", organization: address.segments[0] ?? "" };
}

export const links: Links = {
  start: () => startUrl.write({}),
  signIn: (next) => signInUrl.write({ next }),
  home: (organization, project = "") => homeUrl.write({ ...homeDefaults(organization), row: project }),
  welcome: (organization, project = "") => welcomeUrl.write({ ...welcomeDefaults, organization, project }),
};

/** The name of a screen in the breadcrumb. */
export function screenName(place: Place): string {
  switch (place.at) {
    case "signin":
      return "Sign in";
    case "welcome":
      return "Send traces";
    case "start":
      return "Organizations";
    case "home":
      return "Home";
    case "design":
      return "Design";
    case "unknown":
      return "Not found";
  }
}

/** The organization that an address names, or an empty text. */
export function organizationOf(place: Place): string {
  if (place.at === "home" || place.at === "welcome") return place.state.organization;
  return place.at === "unknown" ? place.organization : "";
}

/** The title of the page: the screen and the object that it shows. */
export function titleOf(place: Place): string {
  const names = [screenName(place), place.at === "unknown" ? "" : organizationOf(place)];
  if (place.at === "welcome" && place.state.project !== "") names.splice(1, 0, place.state.project);
  return [...names.filter((name) => name !== ""), "Assay"].join(" · ");
}

/** Starts to read what a screen needs, before its code and the session are there. */
export function prefetch(place: Place): void {
  if (place.at === "home") prefetchHome(place.state.organization);
}
