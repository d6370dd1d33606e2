// Dialogs that add columns: prompts of the project or a blank one, and models for one prompt or for all.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import { exactCount } from "../../../lib/numbers";
import { promptsIn } from "../queries";
import type { Desk } from "../useDesk";
import { BLANK, modelIn, withModels, withPrompt } from "../variants";
import style from "./Dialogs.module.css";
import { Picker } from "./Picker";

interface DialogProps {
  readonly desk: Desk;
  readonly onClose: () => void;
}

const BLANK_ID = "";

/** The models of the columns that are there, each once. */
const modelsOf = (desk: Desk): readonly string[] => [
  ...new Set(desk.playground.variants.map(({ model }) => model).filter((model) => model !== "")),
];

export function AddPrompts({ desk, onClose }: DialogProps) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const saved = promptsIn(desk.records.data ?? []);
  const models = modelsOf(desk);
  const submit = (): string | null => {
    if (chosen.length === 0) return "Choose at least one prompt.";
    desk.editing.edit((before) =>
      chosen.reduce((next, id) => {
        const record = saved.find((one) => one.id === id);
        if (record === undefined) return withPrompt(next, BLANK, models);
        const { name, slug, version, data } = record;
        // a prompt without a model of its own is asked on the models that are there
        return withPrompt(next, { name, data, source: { id, slug, version } }, modelIn(data) === "" ? models : []);
      }, before),
    );
    return null;
  };
  const options = [
    { id: BLANK_ID, label: "Blank prompt" },
    ...saved.map(({ id, name, slug }, index) => ({ id, label: name, detail: slug, ...(index === 0 ? { heading: "Prompts of the project" } : {}) })),
  ];
  return (
    <FormDialog title="Add prompts" action="Add" onSubmit={submit} onClose={onClose}>
      <Picker label="Prompts" placeholder="Find a prompt" options={options} chosen={chosen} onChosen={setChosen} whenEmpty="No prompt has this in its name." />
    </FormDialog>
  );
}

/** Adds models to one prompt, or to all of them. */
export function AddModels({ desk, prompt, onClose }: DialogProps & { readonly prompt: string | null }) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const prompts = desk.playground.prompts.filter(({ id }) => prompt === null || id === prompt);
  const ids = prompts.map(({ id }) => id);
  const added = withModels(desk.playground, ids, chosen).variants.length - desk.playground.variants.length;
  const submit = (): string | null => {
    if (chosen.length === 0) return "Choose at least one model.";
    desk.editing.edit((before) => withModels(before, ids, chosen));
    return null;
  };
  const title = prompt === null ? "Add models to all prompts" : `Add models to ${prompts[0]?.name ?? "the prompt"}`;
  return (
    <FormDialog title={title} action="Add" onSubmit={submit} onClose={onClose}>
      <Picker
        label="Models"
        placeholder="Find or type a model"
        options={desk.models.map((id) => ({ id, label: id }))}
        chosen={chosen}
        onChosen={setChosen}
        isOpen
        whenEmpty="No AI secret offers a model. Type the name of one."
      />
      <p className={style["hint"]} role="status">
        {chosen.length === 0
          ? "Each model that you choose adds a column for each prompt."
          : `${exactCount(chosen.length)} chosen, which adds ${exactCount(added)} ${added === 1 ? "column" : "columns"}.`}
      </p>
    </FormDialog>
  );
}
