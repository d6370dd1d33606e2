// Visits of an organization's home, and pinned projects: preferences of this browser.
import { remember, remembered } from "../../lib/preferences";

/** Who stays away for so long, in milliseconds, begins another visit. */
const APART_MS = 30 * 60_000;

export interface Visit {
  /** When the home was last opened. */
  readonly at: number;
  /** The end of the visit before; null during the first one. */
  readonly since: number | null;
}

export function readVisit(text: string | null): Visit | null {
  const [, at, since] = /^(\d+) (\d+|-)$/.exec(text ?? "") ?? [];
  return at === undefined ? null : { at: Number(at), since: since === "-" ? null : Number(since) };
}

export const writeVisit = ({ at, since }: Visit): string => `${at} ${since ?? "-"}`;

/** The visit at a moment. Opening the home again soon after belongs to the same visit. */
export function visitAt(before: Visit | null, now: number): Visit {
  if (before === null) return { at: now, since: null };
  return { at: now, since: now - before.at > APART_MS ? before.at : before.since };
}

const visitName = (organization: string): string => `visit.${organization}`;

/** Notes that the home is opened now. */
export function beginVisit(organization: string): Visit {
  const visit = visitAt(readVisit(remembered(visitName(organization))), Date.now());
  remember(visitName(organization), writeVisit(visit));
  return visit;
}

const pinsName = (organization: string): string => `pins.${organization}`;

/** The ids of the pinned projects of an organization, which its name tells. */
export const pinnedOf = (organization: string): ReadonlySet<string> =>
  new Set((remembered(pinsName(organization)) ?? "").split(" ").filter((id) => id !== ""));

/** Pins a project, or unpins it, and returns those that are pinned then. */
export function togglePin(organization: string, project: string): ReadonlySet<string> {
  const pinned = new Set(pinnedOf(organization));
  if (!pinned.delete(project)) pinned.add(project);
  remember(pinsName(organization), [...pinned].join(" "));
  return pinned;
}
