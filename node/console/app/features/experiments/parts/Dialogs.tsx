// The dialogs of the list: the details of an experiment, and its deletion.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import { changeExperiment, deleteExperiment, type Experiment } from "../../../api/experiments";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { exactCount } from "../../../lib/numbers";
import { refreshExperiments } from "../queries";
import style from "./Dialogs.module.css";

export interface Place {
  readonly organization: string;
  readonly projectId: string;
}

interface DialogProps {
  readonly place: Place;
  readonly experiment: Experiment;
  readonly onClose: () => void;
}

/** What an experiment ran with, which cannot be changed. */
function Facts({ experiment }: { readonly experiment: Experiment }) {
  const { repo, metadata } = experiment;
  const facts = [
    ["Id", experiment.id],
    ["Commit", repo.commit === null ? null : `${repo.commit}${repo.isDirty ? ", with changes that were not committed" : ""}`],
    ["Branch", repo.branch],
    ["Message", repo.message],
  ] as const;
  return (
    <>
      <dl className={style["details"]}>
        {facts.map(
          ([title, value]) =>
            value !== null && (
              <>
                <dt>{title}</dt>
                <dd>{value}</dd>
              </>
            ),
        )}
      </dl>
      {metadata !== null && <pre className={style["metadata"]} tabIndex={0} aria-label="Metadata">{JSON.stringify(metadata, null, 2)}</pre>}
    </>
  );
}

export function DetailsDialog({ place, experiment, taken, onClose }: DialogProps & { readonly taken: readonly string[] }) {
  const [name, setName] = useState(experiment.name);
  const [description, setDescription] = useState(experiment.description);
  const [tags, setTags] = useState(experiment.tags.join(", "));
  const submit = async (): Promise<string | null> => {
    const wanted = name.trim();
    if (wanted === "") return "Enter a name first.";
    if (wanted !== experiment.name && taken.includes(wanted)) return `Another experiment is called ${wanted} already.`;
    const list = tags.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "");
    await changeExperiment(place.organization, experiment.id, {
      name: wanted,
      description: description.trim(),
      tags: [...new Set(list)],
    });
    await refreshExperiments(place.organization, place.projectId);
    toast(`${wanted} is saved.`);
    return null;
  };
  return (
    <FormDialog title={`Details of ${experiment.name}`} action="Save" onSubmit={submit} onClose={onClose}>
      <Field label="Name" autoComplete="off" autoFocus value={name} onChange={(event) => setName(event.currentTarget.value)} />
      <Field
        label="Description"
        autoComplete="off"
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      <Field
        label="Tags"
        autoComplete="off"
        hint="Separate tags by commas."
        value={tags}
        onChange={(event) => setTags(event.currentTarget.value)}
      />
      <Facts experiment={experiment} />
    </FormDialog>
  );
}

export function DeleteDialog({ place, experiment, rows, onClose }: DialogProps & { readonly rows: number | null }) {
  const [typed, setTyped] = useState("");
  const { name } = experiment;
  const submit = async (): Promise<string | null> => {
    if (typed !== name) return `Type ${name}, the name of the experiment.`;
    await deleteExperiment(place.organization, experiment.id);
    await refreshExperiments(place.organization, place.projectId);
    toast(`${name} is deleted.`);
    return null;
  };
  return (
    <FormDialog title={`Delete ${name}?`} action="Delete" onSubmit={submit} onClose={onClose}>
      <p>
        {rows === null || rows === 0 ? "The experiment" : `The experiment with its ${exactCount(rows)} rows`} goes away for
        everybody.
      </p>
      <Field
        label={`Type “${name}” to delete it`}
        autoComplete="off"
        autoFocus
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
