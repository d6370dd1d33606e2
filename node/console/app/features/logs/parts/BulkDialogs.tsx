// The dialogs that assign rows to a person and copy them to a dataset.
import { useQuery } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { problemOf } from "../../../api/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import {
  addToDataset,
  assign,
  datasetsQuery,
  makeDataset,
  peopleQuery,
  refreshLists,
  type Place,
} from "../bulk";
import style from "./BulkBar.module.css";

export interface BulkDialogProps {
  readonly ids: readonly string[];
  /** The rows in words: `3 traces`. */
  readonly words: string;
  readonly place: Place;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

interface FormProps {
  readonly title: string;
  readonly action: string;
  readonly onClose: () => void;
  /** Looks at what was entered, says what is wrong with it, and tells whether nothing is. */
  readonly isReady?: () => boolean;
  readonly onSubmit: () => Promise<void>;
  readonly children: ReactNode;
}

/** A dialog with a form that says what failed. */
export function FormDialog({ title, action, onClose, isReady, onSubmit, children }: FormProps) {
  const [fault, setFault] = useState("");
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isSending || isReady?.() === false) return;
    setSending(true);
    setFault("");
    try {
      await onSubmit();
      onClose();
    } catch (error) {
      setFault(problemOf(error, 0).text);
      setSending(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className={style["form"]} onSubmit={(event) => void submit(event)} noValidate>
        {children}
        <p className={style["fault"]} role="alert">
          {fault}
        </p>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" aria-disabled={isSending}>
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
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

export function AssignDialog({ ids, words, place, onClose, onDone }: BulkDialogProps) {
  const people = useQuery(peopleQuery(place.organization)).data ?? [];
  const [person, setPerson] = useState("");
  return (
    <FormDialog
      title={`Assign ${words}`}
      action="Assign"
      onClose={onClose}
      onSubmit={async () => {
        await assign(place, ids, person);
        await refreshLists(place.organization);
        const name = people.find((one) => one.id === person)?.name;
        toast(name === undefined ? `Nobody has ${words} any more.` : `${name} has ${words} to review.`);
        onDone();
      }}
    >
      <Select label="To" value={person} options={people} onChange={setPerson} none="Nobody" />
    </FormDialog>
  );
}

const addedWords = (added: number, known: number, name: string): string => {
  const already = known === 0 ? "" : ` ${known === 1 ? "1 was" : `${known} were`} there already.`;
  return `${added === 1 ? "1 row was" : `${added} rows were`} added to ${name}.${already}`;
};

export function DatasetDialog({ ids, words, place, onClose, onDone }: BulkDialogProps) {
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
          throw new Error("The new dataset has no name.");
        }
        const dataset = datasets.find((one) => one.id === chosen) ?? (await makeDataset(place, wanted));
        const { added, known } = await addToDataset(place, ids, dataset.id);
        toast(addedWords(added, known, dataset.name));
        onDone();
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
