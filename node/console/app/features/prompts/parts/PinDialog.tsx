// The dialog that gives an environment a version, over what changes for it.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { makeEnvironment, pinVersion, readPinned, unpinVersion } from "../../../api/prompts";
import { askToSignIn } from "../../../api/gate";
import { cache, readingOf } from "../../../api/queries";
import { Diff } from "../../../design/Diff";
import { Field } from "../../../design/Field";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { toast } from "../../../design/Toast";
import { ApiError } from "../../../lib/errors";
import type { Reading } from "../../../lib/problem";
import { slugFor, versionText } from "../draft";
import { environmentsQuery, refresh, versionQuery } from "../queries";
import type { Desk } from "../useDesk";
import style from "./parts.module.css";
import { isOlder, versionInWords } from "./Words";

const LINES = [[40], [48], [36], [44]];

interface PinDialogProps {
  readonly desk: Desk;
  readonly slug: string;
  /** The version that the environment gets; null to take its version away. */
  readonly version: string | null;
  readonly onClose: () => void;
}

/** The text of a version, as it is read; an empty text for none, or for one that is gone. */
function useText({ place, newest }: Desk, version: string | null): Reading<string> {
  const isRead = version !== null && version !== newest.version;
  const query = useQuery({ ...versionQuery(place, newest.id, version ?? ""), enabled: isRead, retry: false });
  const reading = readingOf(query);
  const isGone = query.error instanceof ApiError && query.error.status === 404;
  if (isRead && !isGone) return { ...reading, data: query.data === undefined ? undefined : versionText(query.data) };
  return { ...reading, data: version === newest.version ? versionText(newest) : "", problem: null, isReading: false };
}

interface ChangesProps {
  readonly old: Reading<string>;
  readonly next: Reading<string>;
}

/** What changes for the environment, as soon as both texts are read. */
function Changes({ old, next }: ChangesProps) {
  return (
    <div className={style["changes"]}>
      <Loaded reading={old} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(old.again)}>
        {(before) => (
          <Loaded reading={next} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(next.again)}>
            {(after) => <Diff before={before} after={after} />}
          </Loaded>
        )}
      </Loaded>
    </div>
  );
}

/** Which version an environment has until now; it may be of the same moment as the one that it gets. */
function usedBefore(before: string, version: string | null): string {
  const words = versionInWords(before);
  if (version === null || words !== versionInWords(version)) return `the version of ${words}`;
  return `the ${isOlder(before, version) ? "older" : "newer"} version of ${words}`;
}

export function PinDialog({ desk, slug, version, onClose }: PinDialogProps) {
  const { place, newest } = desk;
  const [before, setBefore] = useState(() => desk.pinned.find((one) => one.slug === slug)?.version ?? null);
  const [old, next] = [useText(desk, before), useText(desk, version)];
  const submit = async (): Promise<string | null> => {
    const present = (await readPinned(place.organization, newest.id)).find((one) => one.slug === slug)?.version ?? null;
    if (present !== before) {
      setBefore(present);
      return `Somebody changed ${slug} meanwhile. The difference is now to what it has at present.`;
    }
    if (version === null) await unpinVersion(place.organization, newest.id, slug);
    else await pinVersion(place.organization, newest.id, { slug, version });
    await refresh(place);
    toast(version === null ? `${slug} has no version any more.` : `${slug} now uses the version of ${versionInWords(version)}.`);
    return null;
  };
  const title = version === null ? `Take the version of ${slug} away?` : `Put ${slug} on the version of ${versionInWords(version)}?`;
  return (
    <FormDialog title={title} action={version === null ? "Take away" : `Put ${slug} on it`} form="wide" onSubmit={submit} onClose={onClose}>
      <p>
        {before === null ? `${slug} has no version yet.` : `${slug} uses ${usedBefore(before, version)}.`}{" "}
        {version === null ? "Code that asks for the environment finds nothing from then on." : "It gets this version at once, with these changes."}
      </p>
      <Changes {...{ old, next }} />
    </FormDialog>
  );
}

export function NewEnvironment({ desk, onMade, onClose }: { readonly desk: Desk; readonly onMade: (slug: string) => void; readonly onClose: () => void }) {
  const { organization } = desk.place;
  const [name, setName] = useState("");
  const submit = async (): Promise<string | null> => {
    const slug = slugFor(name);
    if (slug === "") return "Enter a name first.";
    await makeEnvironment(organization, name.trim(), slug);
    await cache.invalidateQueries({ queryKey: environmentsQuery(organization).queryKey });
    onMade(slug);
    return null;
  };
  return (
    <FormDialog title="New environment" action="Create" onSubmit={submit} onClose={onClose}>
      <Field label="Name" autoComplete="off" autoFocus value={name} onChange={(event) => setName(event.currentTarget.value)} hint="All projects of the organization have it: production, for example." />
    </FormDialog>
  );
}
