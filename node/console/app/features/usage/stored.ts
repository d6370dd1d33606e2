// What is stored, as the page says it: projects in order, shares of quotas, and rates in words.
import type { Rate, StoredProject } from "../../api/usage";
import { exactCount } from "../../lib/numbers";
import type { UsageSort } from "./url";

const byName = (a: StoredProject, b: StoredProject): number =>
  a.name.localeCompare(b.name, "en", { numeric: true, sensitivity: "base" }) || (a.id < b.id ? -1 : 1);

/** Projects in order, the largest first. Where sizes are equal, rows decide, and the other way round. */
export const sortedProjects = (projects: readonly StoredProject[], sort: UsageSort): readonly StoredProject[] =>
  projects.toSorted((a, b) => (sort === "name" ? 0 : b[sort] - a[sort] || b.bytes - a.bytes || b.rows - a.rows) || byName(a, b));

/** How much of a whole a part is, from 0 on; 0 of nothing. */
export const shareOf = (part: number, whole: number | null): number =>
  whole === null || whole <= 0 ? (whole === 0 && part > 0 ? 1 : 0) : part / whole;

/** A share in words: `12 %`, `< 1 %`. */
export function shareText(share: number): string {
  const percent = Math.round(share * 100);
  return share > 0 && percent === 0 ? "< 1 %" : `${percent} %`;
}

export const toneOf = (share: number): "none" | "warn" | "bad" => (share >= 1 ? "bad" : share >= 0.8 ? "warn" : "none");

const WINDOWS: Readonly<Record<number, string>> = { 1: "second", 60: "minute", 3600: "hour", 86_400: "day" };

/** A window of time in words: `minute`, `10 s`. */
export const windowText = (seconds: number): string => WINDOWS[seconds] ?? `${exactCount(seconds)} s`;

/** What a rate is about: `POST /btql`. */
export const rateName = ({ methods, endpoint }: Rate): string => [methods.join(", "), endpoint === "*" ? "Every path" : endpoint].filter((part) => part !== "").join(" ");

/** What a rate allows: `20 per minute for each organization, 12 of 20 at once left`. */
export function rateText({ requests, seconds, per, burst, left }: Rate): string {
  const each = per === "" ? "" : ` for each ${per.replace("+", " and ")}`;
  const now = left === null ? "" : `, ${exactCount(left)} of ${exactCount(burst)} at once left`;
  return `${exactCount(requests)} per ${windowText(seconds)}${each}${now}`;
}

/** How much of a rate is used up, from 0 to 1. */
export const rateFill = ({ burst, left }: Rate): number => (left === null ? 0 : shareOf(Math.max(0, burst - left), burst));
