// The dialogs that make, name and delete prompts and functions.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import { changePromptDetails, deletePromptRecord, makePromptRecord, type PromptRecord } from "../../../api/prompts";
import { Field } from "../../../design/Field";
import { ModelPicker } from "../../../design/ModelPicker";
import { toast } from "../../../design/Toast";
import { slugFor, withModel } from "../draft";
import { refresh, type ProjectPlace } from "../queries";

interface NameFieldsProps {
  readonly name: string;
  readonly slug: string;
  readonly onName: (name: string) => void;
  readonly onSlug: (slug: string) => void;
}

function NameFields({ name, slug, onName, onSlug }: NameFieldsProps) {
  return (
    <>
      <Field label="Name" autoComplete="off" autoFocus value={name} onChange={(event) => onName(event.currentTarget.value)} />
      <Field
        label="Slug"
        autoComplete="off"
        value={slug}
        onChange={(event) => onSlug(event.currentTarget.value)}
        hint="Code names it like this."
      />
    </>
  );
}

function namesFault(name: string, slug: string, taken: readonly string[]): string | null {
  if (name === "" || slug === "") return "Enter a name and a slug first.";
  return taken.includes(slug) ? `The slug ${slug} is taken. Choose another one.` : null;
}

interface NewProps {
  readonly place: ProjectPlace;
  /** The slugs that are taken. */
  readonly taken: readonly string[];
  readonly models: readonly string[];
  readonly userId: string;
  readonly onMade: (slug: string) => void;
  readonly onClose: () => void;
}

const FIRST = { prompt: { type: "chat", messages: [{ role: "system", content: "" }, { role: "user", content: "{{input}}" }] } };

export function NewPrompt({ place, taken, models, userId, onMade, onClose }: NewProps) {
  const [name, setName] = useState("");
  const [typed, setSlug] = useState<string | null>(null);
  const [model, setModel] = useState("");
  const slug = typed ?? slugFor(name);
  const submit = async (): Promise<string | null> => {
    const fault = namesFault(name.trim(), slug.trim(), taken);
    if (fault !== null) return fault;
    const data = withModel(FIRST, model.trim());
    const made = await makePromptRecord(place.organization, place.projectId, { name: name.trim(), slug: slug.trim(), data, by: userId });
    if (made.name !== name.trim()) return namesFault(name, made.slug, [made.slug]);
    await refresh(place);
    onMade(made.slug);
    return null;
  };
  return (
    <FormDialog title="New prompt" action="Create" onSubmit={submit} onClose={onClose}>
      <NameFields name={name} slug={slug} onName={setName} onSlug={setSlug} />
      <ModelPicker value={model} onChange={setModel} models={models} />
    </FormDialog>
  );
}

interface RecordProps {
  readonly place: ProjectPlace;
  readonly record: PromptRecord;
  readonly onClose: () => void;
}

export function DetailsDialog({ place, record, onDone, onClose }: RecordProps & { readonly onDone: (slug: string) => void }) {
  const [name, setName] = useState(record.name);
  const [slug, setSlug] = useState(record.slug);
  const [description, setDescription] = useState(record.description);
  const submit = async (): Promise<string | null> => {
    const fault = namesFault(name.trim(), slug.trim(), []);
    if (fault !== null) return fault;
    const changed = await changePromptDetails(place.organization, record.id, {
      name: name.trim(),
      slug: slug.trim(),
      description: description.trim(),
    });
    onDone(changed.slug);
    await refresh(place);
    toast(`${changed.name} is saved.`);
    return null;
  };
  return (
    <FormDialog title={`Name and description of ${record.name}`} action="Save" onSubmit={submit} onClose={onClose}>
      <NameFields name={name} slug={slug} onName={setName} onSlug={setSlug} />
      <Field label="Description" autoComplete="off" value={description} onChange={(event) => setDescription(event.currentTarget.value)} />
    </FormDialog>
  );
}

export function DeleteDialog({ place, record, onDone, onClose }: RecordProps & { readonly onDone: () => void }) {
  const [typed, setTyped] = useState("");
  const submit = async (): Promise<string | null> => {
    if (typed !== record.slug) return `Type ${record.slug}, the slug.`;
    await deletePromptRecord(place.organization, record.id);
    onDone();
    await refresh(place);
    toast(`${record.name} is deleted.`);
    return null;
  };
  return (
    <FormDialog title={`Delete ${record.name}?`} action="Delete" onSubmit={submit} onClose={onClose}>
      <p>It goes away with all its versions, for everybody. Code that runs it fails from then on.</p>
      <Field
        label={`Type “${record.slug}” to delete it`}
        autoComplete="off"
        autoFocus
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
