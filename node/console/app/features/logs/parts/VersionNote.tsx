// The line that says that the list shows the past.
import { preferences } from "../../../lib/preferences";
import { clock, day, zoneName } from "../../../lib/time";
import { momentOf, readVersion } from "../../../lib/version";
import { Note } from "./Bar";

function words(version: string): string {
  const read = readVersion(version);
  const zone = preferences.value.zone;
  const at = read.kind === "moment" ? read.at : read.kind === "transaction" ? momentOf(read.id) : null;
  if (at === null) return `transaction ${version}`;
  return `${day(at, zone)} ${clock(at, zone).slice(0, 8)} ${zoneName(at, zone)}`;
}

export function VersionNote({ version, onBack }: { readonly version: string; readonly onBack: () => void }) {
  return (
    <Note action="Back to now" onAction={onBack}>
      These are the rows as they were at {words(version)}.
    </Note>
  );
}
