// Dialogs that save columns: as experiments with all of their spans, or as a version of a prompt.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import type { Variant } from "../../../api/playground";
import { insertEvents, makeExperiment, readRunSpans } from "../../../api/playgroundRuns";
import { makePromptRecord, savePrompt } from "../../../api/prompts";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { useLinks } from "../../../lib/links";
import { exactCount } from "../../../lib/numbers";
import { navigate } from "../../../lib/router";
import { forgetPrompts } from "../queries";
import { isSavable, saveRuns, type Ran } from "../saving";
import type { Desk } from "../useDesk";
import { ranOf } from "../useRuns";
import { changedPrompt, dataOf, promptOf } from "../variants";
import style from "./Dialogs.module.css";

interface DialogProps {
  readonly desk: Desk;
  readonly onClose: () => void;
}

/** How many experiments the comparison shows. */
const COMPARED_MAX = 8;

/** The runs of a column that can be saved. */
const runsOf = (desk: Desk, variant: string): readonly Ran[] =>
  desk.cellsOf([variant]).flatMap((key) => {
    const cell = desk.runs.store.get(key);
    const ran = isSavable(cell) ? ranOf({ playground: desk.playground, rows: desk.rows.byId }, key, cell) : null;
    return ran === null ? [] : [ran];
  });

function savedWords(count: number, missing: number): string {
  const saved = count === 1 ? "1 cell is saved with its spans and scores." : `${exactCount(count)} cells are saved with their spans and scores.`;
  if (missing === 0) return saved;
  return `${saved} ${missing === 1 ? "1 has not run to its end and is" : `${exactCount(missing)} have not run to their end and are`} left out.`;
}

const sumOf = (lists: readonly (readonly unknown[])[]): number => lists.reduce((sum, list) => sum + list.length, 0);

/** Writes an experiment for each column, and returns their names. */
async function saveAll(desk: Desk, base: string, columns: readonly Variant[], onDone: (done: number) => void): Promise<readonly string[]> {
  const { place, record, playground, rows, titles } = desk;
  const { organization, projectId } = place;
  const names: string[] = [];
  let before = 0;
  for (const variant of columns) {
    const prompt = promptOf(playground, variant);
    const runs = runsOf(desk, variant.id);
    const source = prompt?.source ?? null;
    const made = await makeExperiment(organization, projectId, {
      name: columns.length === 1 ? base : `${base} · ${titles.get(variant.id) ?? ""}`,
      metadata: {
        playground: { id: record.id, name: desk.name },
        prompt: { name: prompt?.name ?? "", ...(source === null ? {} : { slug: source.slug, version: source.version }) },
        model: variant.model,
        ...variant.params,
      },
      dataset: playground.rows.kind === "dataset" ? { id: playground.rows.id, version: rows.version } : null,
    });
    const server = {
      spans: (roots: readonly string[]) => readRunSpans(organization, record.id, roots),
      insert: (events: Parameters<typeof insertEvents>[2]) => insertEvents(organization, made.id, events),
    };
    await saveRuns(runs, server, (done) => onDone(before + done));
    before += runs.length;
    names.push(made.name);
  }
  return names;
}

interface ExperimentsProps extends DialogProps {
  /** The only column that is saved; null for all that have run. */
  readonly only: string | null;
}

export function SaveExperiments({ desk, only, onClose }: ExperimentsProps) {
  const links = useLinks();
  const [name, setName] = useState(desk.name);
  const [done, setDone] = useState<number | null>(null);
  const [columns] = useState(() =>
    desk.playground.variants.filter(({ id }) => (only === null || id === only) && runsOf(desk, id).length > 0),
  );
  const [chosen, setChosen] = useState<readonly string[]>(columns.map(({ id }) => id));
  const saved = columns.filter(({ id }) => chosen.includes(id));
  const count = sumOf(saved.map(({ id }) => runsOf(desk, id)));
  const missing = saved.length * desk.rows.all.length - count;
  const submit = async (): Promise<string | null> => {
    if (name.trim() === "") return "Enter a name first.";
    if (saved.length === 0) return "No column has run. Run one first.";
    const [first = "", ...others] = await saveAll(desk, name.trim(), saved, setDone);
    const { organization, project } = desk.place;
    const [main = first, ...more] = others.slice(0, COMPARED_MAX - 1);
    toast(others.length === 0 ? "The experiment is saved." : `${exactCount(others.length + 1)} experiments are saved.`);
    navigate(links.experiment(organization, project, main, others.length === 0 ? [] : [first, ...more]), "push");
    return null;
  };
  return (
    <FormDialog title={only === null ? "Save as experiments" : "Save as an experiment"} action="Save" onSubmit={submit} onClose={onClose}>
      <Field label="Name" value={name} autoComplete="off" autoFocus onChange={(event) => setName(event.currentTarget.value)} />
      {columns.length > 1 && (
        <fieldset className={style["options"]}>
          <legend className={style["hint"]}>Each column becomes an experiment.</legend>
          {columns.map(({ id }) => (
            <label key={id}>
              <input
                type="checkbox"
                checked={chosen.includes(id)}
                onChange={() => setChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id])}
              />
              <span>{desk.titles.get(id)}</span>
            </label>
          ))}
        </fieldset>
      )}
      <p className={style["hint"]} role="status">
        {done !== null
          ? `Saved ${exactCount(done)} of ${exactCount(count)} ${count === 1 ? "cell" : "cells"}.`
          : savedWords(count, missing)}
      </p>
    </FormDialog>
  );
}

const slugOf = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "");

export function SaveVersion({ desk, variant: id, onClose }: DialogProps & { readonly variant: string }) {
  const { place, playground, records, editing, userId } = desk;
  const variant = playground.variants.find((one) => one.id === id);
  const prompt = promptOf(playground, variant);
  const present = records.data?.find((one) => one.id === prompt?.source?.id);
  const [isNew, setNew] = useState(present === undefined);
  const [name, setName] = useState(prompt?.name ?? "");
  const [slug, setSlug] = useState(slugOf(prompt?.name ?? ""));
  const [note, setNote] = useState("");
  const submit = async (): Promise<string | null> => {
    if (variant === undefined || prompt === null) return "The column is gone.";
    const data = dataOf(prompt, variant);
    const keep = { organization: place.organization, projectId: place.projectId };
    if (isNew && (name.trim() === "" || slug.trim() === "")) return "Enter a name and a slug first.";
    if (isNew && records.data?.some((one) => one.slug === slug.trim()) !== false) return "The project has a prompt with this slug. Choose another one.";
    const saved =
      isNew || present === undefined
        ? await makePromptRecord(keep.organization, keep.projectId, { name: name.trim(), slug: slug.trim(), data, by: userId })
        : await savePrompt(keep.organization, present, { data }, { text: note.trim(), by: userId });
    editing.edit((before) =>
      changedPrompt(before, prompt.id, { source: { id: saved.id, slug: saved.slug, version: saved.version }, ...(isNew ? { name: saved.name } : {}) }),
    );
    await forgetPrompts(place);
    toast(isNew ? `The prompt ${saved.slug} is saved.` : `A new version of ${saved.slug} is saved.`);
    return null;
  };
  return (
    <FormDialog title="Save as a version of a prompt" action="Save" onSubmit={submit} onClose={onClose}>
      {present !== undefined && (
        <label className={style["area"]}>
          Save as
          <select value={isNew ? "new" : "version"} onChange={(event) => setNew(event.currentTarget.value === "new")}>
            <option value="version">A new version of {present.slug}</option>
            <option value="new">A new prompt</option>
          </select>
        </label>
      )}
      {isNew ? (
        <>
          <Field
            label="Name"
            value={name}
            autoComplete="off"
            onChange={(event) => {
              setName(event.currentTarget.value);
              setSlug(slugOf(event.currentTarget.value));
            }}
          />
          <Field label="Slug" hint="Code loads the prompt by this name." value={slug} autoComplete="off" onChange={(event) => setSlug(event.currentTarget.value)} />
        </>
      ) : (
        <Field label="Note" hint="What changed, for the list of versions. It may be empty." value={note} autoComplete="off" onChange={(event) => setNote(event.currentTarget.value)} />
      )}
      <p className={style["hint"]}>The version has the messages, the model and the parameters of “{desk.titles.get(id)}”.</p>
    </FormDialog>
  );
}
