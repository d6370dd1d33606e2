// The dialog that gives an environment a version, over what changes for it.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { makeEnvironment, pinVersion, readPinned, unpinVersion } from "../../../api/prompts";
import { cache } from "../../../api/queries";
import { Diff } from "../../../design/Diff";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { slugFor, versionText } from "../draft";
import { environmentsQuery, refresh, versionQuery } from "../queries";
import type { Desk } from "../useDesk";
import style from "./parts.module.css";
import { versionInWords } from "./Words";

interface PinDialogProps {
  readonly desk: Desk;
  readonly slug: string;
  /** The version that the environment gets; null to take its version away. */
  readonly version: string | null;
  readonly onClose: () => void;
}

/** The text of a version, as it is read; an empty text for none. */
function useText({ place, newest }: Desk, version: string | null): string | null {
  const isRead = version !== null && version !== newest.version;
  const query = useQuery({ ...versionQuery(place, newest.id, version ?? ""), enabled: isRead, retry: false });
  if (version === null || query.error !== null) return "";
  if (!isRead) return versionText(newest);
  return query.data === undefined ? null : versionText(query.data);
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
        {before === null ? `${slug} has no version yet.` : `${slug} uses the version of ${versionInWords(before)}.`}{" "}
        {version === null ? "Code that asks for the environment finds nothing from then on." : "This is what changes for it at once."}
      </p>
      <div className={style["changes"]}>{old !== null && next !== null && <Diff before={old} after={next} />}</div>
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
