// The dialog that gives rows a score: one that the project defines, or another by its name.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ScoreDefinition } from "../../../api/history";
import { Field } from "../../../design/Field";
import { FormDialog } from "../../../design/FormDialog";
import { givenScoresQuery } from "../scoring";
import { Select, type BulkDialogProps } from "./BulkDialogs";

/** What is wrong with a value, in a sentence; null if it is a number from 0 to 1. */
const valueFault = (text: string): string | null => {
  const number = Number(text);
  return text.trim() !== "" && number >= 0 && number <= 1 ? null : "Enter a number from 0 to 1.";
};

interface ValueProps {
  readonly definition: ScoreDefinition | undefined;
  readonly value: string;
  readonly fault: string | null;
  readonly onValue: (value: string) => void;
}

function Value({ definition, value, fault, onValue }: ValueProps) {
  const categories = definition?.categories ?? [];
  if (categories.length === 0) {
    return (
      <Field
        label="Value"
        hint="A number from 0 to 1."
        inputMode="decimal"
        autoComplete="off"
        value={value}
        fault={fault}
        onChange={(event) => onValue(event.currentTarget.value)}
      />
    );
  }
  const options = categories.map((category) => ({ id: String(category.value), name: category.name }));
  return <Select label="Value" value={value} options={options} onChange={onValue} none="Choose one" fault={fault} />;
}

export function ScoreDialog({ acting, onClose, onDone }: BulkDialogProps) {
  const defined = useQuery(givenScoresQuery(acting.place)).data ?? [];
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [faults, setFaults] = useState<{ readonly name: string | null; readonly value: string | null }>({ name: null, value: null });
  const definition = defined.find((one) => one.id === chosen);
  const wanted = definition?.name ?? name.trim();
  return (
    <FormDialog
      title={`Score ${acting.words}`}
      action="Give the score"
      onClose={onClose}
      onSubmit={async () => {
        const found = { name: wanted === "" ? "Enter a name first." : null, value: valueFault(value) };
        setFaults(found);
        // each is said at its own field
        if (found.name !== null || found.value !== null) return "";
        await acting.score(wanted, Number(value));
        onDone();
        return null;
      }}
    >
      {defined.length > 0 && (
        <Select
          label="Score"
          value={chosen}
          options={defined}
          none="Another score"
          onChange={(id) => {
            setChosen(id);
            setValue("");
          }}
        />
      )}
      {definition === undefined && (
        <Field
          label="Name of the score"
          autoComplete="off"
          value={name}
          fault={faults.name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      )}
      <Value definition={definition} value={value} fault={faults.value} onValue={setValue} />
    </FormDialog>
  );
}
