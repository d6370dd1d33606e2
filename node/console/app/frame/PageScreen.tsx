// The screens of the pages that read their own addresses.
import type { ComponentType } from "react";
import type { Session } from "../api/schema";
import type { PageId, PagePlace } from "../lib/pages";
import { failed, later } from "./later";

/** What a page's screen is given. */
export interface PageProps {
  readonly place: PagePlace;
  readonly session: Session;
}

const SCREENS: Readonly<Record<PageId, ComponentType<PageProps>>> = {
  prompts: later(async () => (await import("../features/prompts/screen")).PromptsScreen, failed),
  functions: later(async () => (await import("../features/prompts/screen")).PromptsScreen, failed),
  playgrounds: later(async () => (await import("../features/playground/screen")).PlaygroundScreen, failed),
  review: later(async () => (await import("./ReviewScreens")).ReviewScreens, failed),
  settings: later(async () => (await import("./SettingsScreens")).SettingsScreen, failed),
  cluster: later(async () => (await import("../features/cluster/screen")).ClusterScreen, failed),
};

export function PageScreen({ place, session }: PageProps) {
  const Shown = SCREENS[place.page.id];
  return <Shown key={`${place.organization}/${place.project}`} place={place} session={session} />;
}
