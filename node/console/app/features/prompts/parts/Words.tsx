// Small words of these screens: a moment, and the chips of environments.
import type { Pinned } from "../../../api/prompts";
import { Chip } from "../../../design/Chip";
import { preferences } from "../../../lib/preferences";
import { clock, day, fullMoment, now, shortMoment } from "../../../lib/time";
import { momentOf } from "../../../lib/version";

/** The present, which is not before what has happened: the clock of the page stands for half a minute. */
const presentFor = (at: Date | null, present: number): number => Math.max(present, at?.getTime() ?? 0);

const words = (at: Date | null, present: number): string =>
  shortMoment(at, presentFor(at, present), preferences.value.zone).replace(/\.000$/, "");

/** A moment to the second that follows the clock and the zone by itself. */
export function When({ at }: { readonly at: Date | null }) {
  return <span title={fullMoment(at)}>{words(at, now.value)}</span>;
}

/** When a version was written. */
export const VersionTime = ({ version }: { readonly version: string }) => <When at={momentOf(version)} />;

/** Whether a version is of before another. Their ids are numbers, of which the second has the same length. */
export const isOlder = (version: string, than: string): boolean =>
  version.length === than.length ? version < than : version.length < than.length;

/** When two versions were written, told apart by their order where the words are the same. */
export function ChangedTimes({ from, to }: { readonly from: string; readonly to: string }) {
  const { zone } = preferences.value;
  const shown = (version: string, other: string) => {
    const at = momentOf(version);
    if (at === null) return version;
    if (versionInWords(from) !== versionInWords(to)) return <When at={at} />;
    const isSame = momentOf(other)?.getTime() === at.getTime();
    return `${day(at, zone)} ${clock(at, zone).replace(/\.000$/, "")}${isSame ? ` (${isOlder(version, other) ? "older" : "newer"})` : ""}`;
  };
  return (
    <>
      {shown(from, to)} to {shown(to, from)}
    </>
  );
}

/** A version in a sentence: its time, or its id if that has none. */
export function versionInWords(version: string): string {
  const at = momentOf(version);
  return at === null ? version : words(at, now.peek());
}

export function Environments({ pinned }: { readonly pinned: readonly Pinned[] }) {
  return pinned.map(({ slug }) => (
    <Chip key={slug} tone={slug === "production" ? "good" : "none"}>
      {slug}
    </Chip>
  ));
}
