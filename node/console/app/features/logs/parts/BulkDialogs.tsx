// The dialogs that assign rows to a person and copy them to a dataset.
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { makeDataset, type Dataset } from "../../../api/datasets";
import { cache } from "../../../api/queries";
import { Field } from "../../../design/Field";
import { FormDialog } from "../../../design/FormDialog";
import type { Acting } from "../acting";
import { datasetsQuery, peopleQuery, type Place } from "../bulk";
import style from "./BulkBar.module.css";

export interface BulkDialogProps {
  readonly acting: Acting;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly { readonly id: string; readonly name: string }[];
  readonly onChange: (id: string) => void;
  /** The words of the choice that has the empty id. */
  readonly none: string;
  readonly fault?: string | null;
}

export function Select({ label, value, options, onChange, none, fault = null }: SelectProps) {
  const id = useId();
  return (
    <div className={style["field"]}>
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        className={style["select"]}
        value={value}
        aria-invalid={fault !== null || undefined}
        aria-describedby={fault === null ? undefined : `${id}-fault`}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        <option value="">{none}</option>
        {options.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      {fault !== null && (
        <p id={`${id}-fault`} className={style["fault"]}>
          {fault}
        </p>
      )}
    </div>
  );
}

export function AssignDialog({ acting, onClose, onDone }: BulkDialogProps) {
  const people = useQuery(peopleQuery(acting.place.organization)).data ?? [];
  const [person, setPerson] = useState("");
  return (
    <FormDialog
      title={`Assign ${acting.words}`}
      action="Assign"
      onClose={onClose}
      onSubmit={async () => {
        await acting.assign(people.find((one) => one.id === person));
        onDone();
        return null;
      }}
    >
      <Select label="To" value={person} options={people} onChange={setPerson} none="Nobody" />
    </FormDialog>
  );
}

/** The chosen dataset, or a new one of a name. */
async function datasetOf({ organization, projectId }: Place, chosen: Dataset | undefined, name: string): Promise<Dataset> {
  if (chosen !== undefined) return chosen;
  const made = await makeDataset(organization, projectId, { name });
  await cache.invalidateQueries({ queryKey: datasetsQuery({ organization, projectId }).queryKey });
  return made;
}

export function DatasetDialog({ acting, onClose, onDone }: BulkDialogProps) {
  const { place, words } = acting;
  const datasets = useQuery(datasetsQuery(place)).data ?? [];
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  return (
    <FormDialog
      title={`Add ${words} to a dataset`}
      action="Add"
      onClose={onClose}
      onSubmit={async () => {
        const wanted = name.trim();
        if (chosen === "" && wanted === "") {
          setFault("Enter a name first.");
          return "";
        }
        await acting.addTo(await datasetOf(place, datasets.find((one) => one.id === chosen), wanted));
        onDone();
        return null;
      }}
    >
      <Select label="Dataset" value={chosen} options={datasets} onChange={setChosen} none="A new dataset" />
      {chosen === "" && (
        <Field
          label="Name of the new dataset"
          autoComplete="off"
          value={name}
          fault={fault}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      )}
      <p>The output of a row becomes what is expected, unless the row says what it expects.</p>
    </FormDialog>
  );
}
