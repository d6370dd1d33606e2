// The dialogs that make, describe and delete datasets.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import { changeDataset, deleteDataset, makeDataset, type Dataset } from "../../../api/datasets";
import { isRecord } from "../../../api/narrow";
import { jsonFault } from "../../../design/CellEditorJson";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { exactCount } from "../../../lib/numbers";
import { refreshLists } from "../queries";
import { Area } from "./Area";

export interface ProjectPlace {
  readonly organization: string;
  readonly projectId: string;
}

interface NewProps {
  readonly place: ProjectPlace;
  /** The names that are taken. */
  readonly taken: readonly string[];
  readonly onMade: (name: string) => void;
  readonly onClose: () => void;
}

function nameFault(name: string, taken: readonly string[]): string | null {
  if (name === "") return "Enter a name first.";
  return taken.includes(name) ? "A dataset has this name already." : null;
}

export function NewDataset({ place, taken, onMade, onClose }: NewProps) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  return (
    <FormDialog
      title="New dataset"
      action="Create"
      onClose={onClose}
      onSubmit={async () => {
        const fault = nameFault(name.trim(), taken);
        if (fault !== null) return fault;
        const made = await makeDataset(place.organization, place.projectId, {
          name: name.trim(),
          ...(description.trim() === "" ? {} : { description: description.trim() }),
        });
        await refreshLists(place.organization, place.projectId);
        onMade(made.name);
        return null;
      }}
    >
      <Field
        label="Name"
        autoComplete="off"
        autoFocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        hint="Code that reads the dataset names it like this."
      />
      <Area label="Description" rows={3} value={description} onText={setDescription} />
    </FormDialog>
  );
}

interface DetailsProps {
  readonly place: ProjectPlace;
  readonly dataset: Dataset;
  readonly taken: readonly string[];
  readonly onChanged: (dataset: Dataset) => void;
  readonly onClose: () => void;
}

/** Reads metadata as it was typed: an object, or nothing. */
function readMetadata(text: string): { readonly value: Record<string, unknown> | null } | { readonly fault: string } {
  if (text.trim() === "") return { value: null };
  const fault = jsonFault(text);
  if (fault !== null) return { fault: `Metadata, line ${fault.line}, column ${fault.column}: ${fault.message}` };
  const value: unknown = JSON.parse(text);
  return isRecord(value) ? { value } : { fault: "Metadata is a JSON object." };
}

export function DetailsDialog({ place, dataset, taken, onChanged, onClose }: DetailsProps) {
  const [name, setName] = useState(dataset.name);
  const [description, setDescription] = useState(dataset.description);
  const [metadata, setMetadata] = useState(dataset.metadata === null ? "" : JSON.stringify(dataset.metadata, null, 2));
  return (
    <FormDialog
      title={`Name and description of ${dataset.name}`}
      action="Save"
      form="wide"
      onClose={onClose}
      onSubmit={async () => {
        const fault = nameFault(name.trim(), taken.filter((one) => one !== dataset.name));
        const read = readMetadata(metadata);
        if (fault !== null) return fault;
        if ("fault" in read) return read.fault;
        const change = { name: name.trim(), description: description.trim(), metadata: read.value };
        const changed = await changeDataset(place.organization, dataset.id, change);
        onChanged(changed);
        await refreshLists(place.organization, place.projectId);
        toast(`${changed.name} is saved.`);
        return null;
      }}
    >
      <Field label="Name" autoComplete="off" value={name} onChange={(event) => setName(event.currentTarget.value)} />
      <Area label="Description" rows={3} value={description} onText={setDescription} />
      <Area
        label="Metadata"
        rows={8}
        isCode
        value={metadata}
        onText={setMetadata}
        hint='A JSON object. Cells are checked by the schemas in it: {"__schemas": {"input": {..}, "expected": {..}, "metadata": {..}}}.'
      />
    </FormDialog>
  );
}

interface DeleteProps {
  readonly place: ProjectPlace;
  readonly dataset: Dataset;
  readonly rows: number | null;
  readonly onDeleted: () => void;
  readonly onClose: () => void;
}

export function DeleteDataset({ place, dataset, rows, onDeleted, onClose }: DeleteProps) {
  const [typed, setTyped] = useState("");
  return (
    <FormDialog
      title={`Delete ${dataset.name}?`}
      action="Delete"
      onClose={onClose}
      onSubmit={async () => {
        if (typed !== dataset.name) return `Type ${dataset.name}, the name of the dataset.`;
        await deleteDataset(place.organization, dataset.id);
        await refreshLists(place.organization, place.projectId);
        toast(`${dataset.name} is deleted.`);
        onDeleted();
        return null;
      }}
    >
      <p>
        {rows === null || rows === 0 ? "The dataset" : `The dataset with its ${exactCount(rows)} rows`} goes away for
        everybody. Experiments that ran over it stay.
      </p>
      <Field
        label={`Type “${dataset.name}” to delete it`}
        autoComplete="off"
        autoFocus
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
