// The dialog that makes a score or changes one.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { cache } from "../../../api/queries";
import { saveScore, SCORE_TYPES, type Clauses, type Score } from "../../../api/reviewScores";
import { Button, IconButton } from "../../../design/Button";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { clausesOf, editedOf, faultIn, hasCategories, hasValues, NEW_SCORE, recordOf, type EditedCategory, type EditedScore } from "../editing";
import { faultOf, groupsQuery, namesQuery, scoresQuery, type Place } from "../queries";
import style from "./Dialogs.module.css";
import { Check } from "./Check";

export const TYPE_NAMES: Readonly<Record<Score["type"], string>> = {
  slider: "Slider",
  categorical: "Options",
  "free-form": "Text",
  weighted: "Weighted mean",
  minimum: "Minimum",
  maximum: "Maximum",
};

const KINDS = [
  ["project_logs", "Logs"],
  ["experiment", "Experiments"],
  ["dataset", "Datasets"],
] as const;

const CONDITIONS: readonly (readonly [key: keyof Clauses, label: string])[] = [
  ["row", "Hidden if the row fulfils"],
  ["trace", "Hidden if a span of the trace fulfils"],
  ["below", "Hidden if another span of the trace fulfils"],
];

interface ChecksProps {
  readonly legend: string;
  readonly hint?: string;
  readonly options: readonly (readonly [id: string, name: string])[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

/** Boxes of which any number can be checked. */
function Checks({ legend, hint, options, chosen, onChange }: ChecksProps) {
  return (
    <fieldset className={style["checks"]}>
      <legend>{legend}</legend>
      {hint !== undefined && <p className={style["hint"]}>{hint}</p>}
      {options.map(([id, name]) => (
        <Check
          key={id}
          label={name}
          isOn={chosen.includes(id)}
          onChange={(isOn) => onChange(isOn ? [...chosen, id] : chosen.filter((one) => one !== id))}
        />
      ))}
    </fieldset>
  );
}

type Change = (part: Partial<EditedScore>) => void;

interface PartProps {
  readonly edited: EditedScore;
  readonly change: Change;
}

/** The first expression that the server cannot read, in words; null if it reads all. */
async function unreadable(organization: string, edited: EditedScore): Promise<string | null> {
  for (const expression of CONDITIONS.flatMap(([key]) => clausesOf(edited.clauses[key]))) {
    const fault = await faultOf(organization, expression);
    if (fault !== null) return `“${expression}” cannot be read: ${fault}`;
  }
  return null;
}

/** The options of a score, or the scores that it is made of. */
function Categories({ edited, change }: PartProps) {
  const { type, categories } = edited;
  const set = (index: number, part: Partial<EditedCategory>): void =>
    change({ categories: categories.map((one, at) => (at === index ? { ...one, ...part } : one)) });
  const word = type === "categorical" ? "Option" : "Score";
  return (
    <fieldset className={style["categories"]}>
      <legend>{type === "categorical" ? "Options" : "Made of the scores"}</legend>
      {categories.map(({ name, value }, index) => (
        <div key={index} className={style["category"]}>
          <input aria-label={`${word} ${index + 1}`} placeholder={word} value={name} onInput={(event) => set(index, { name: event.currentTarget.value })} />
          {hasValues(type) && (
            <input
              aria-label={`${type === "weighted" ? "Weight" : "Value"} ${index + 1}`}
              inputMode="decimal"
              className={style["number"]}
              value={value}
              onInput={(event) => set(index, { value: event.currentTarget.value })}
            />
          )}
          <IconButton icon="close" label={`Remove ${word.toLowerCase()} ${index + 1}`} onClick={() => change({ categories: categories.filter((_, at) => at !== index) })} />
        </div>
      ))}
      <Button icon="plus" onClick={() => change({ categories: [...categories, { name: "", value: type === "weighted" ? "1" : "0" }] })}>
        Add
      </Button>
    </fieldset>
  );
}

/** Where the answer goes. */
function Destination({ edited, change }: PartProps) {
  const { type, destination, isMultiple } = edited;
  if (type === "free-form") {
    return (
      <Field
        label="Kept in"
        hint="A path of the metadata. Left empty, it is the name of the score."
        autoComplete="off"
        value={destination}
        onChange={(event) => change({ destination: event.currentTarget.value })}
      />
    );
  }
  if (type !== "categorical") return null;
  const isExpected = destination === "expected";
  return (
    <>
      <Check label="The name of the option becomes what is expected" isOn={isExpected} onChange={(isOn) => change({ destination: isOn ? "expected" : "" })} />
      {isExpected && <Check label="Several options can be chosen" isOn={isMultiple} onChange={(isOn) => change({ isMultiple: isOn })} />}
    </>
  );
}

/** Who gives the score, of which rows. */
function Asked({ edited, change, place }: PartProps & { readonly place: Place }) {
  const people = useQuery(namesQuery(place)).data ?? new Map<string, string>();
  const groups = useQuery(groupsQuery(place)).data ?? [];
  const id = useId();
  return (
    <details className={style["more"]} open={edited.users.length + edited.groups.length + edited.kinds.length > 0}>
      <summary>Who gives it, and where</summary>
      <div>
        <Checks legend="People" hint="With nobody and no group chosen, everybody gives it." options={[...people]} chosen={edited.users} onChange={(users) => change({ users })} />
        <Checks legend="Groups" options={groups.map((group) => [group.id, group.name])} chosen={edited.groups} onChange={(chosen) => change({ groups: chosen })} />
        <Checks legend="Rows of" hint="With nothing chosen, it is given to all rows." options={KINDS} chosen={edited.kinds} onChange={(kinds) => change({ kinds })} />
        {CONDITIONS.map(([key, label]) => (
          <div key={key} className={style["text"]}>
            <label htmlFor={`${id}${key}`}>{label}</label>
            <textarea
              id={`${id}${key}`}
              rows={1}
              spellCheck={false}
              placeholder="error IS NOT NULL"
              value={edited.clauses[key]}
              onInput={(event) => change({ clauses: { ...edited.clauses, [key]: event.currentTarget.value } })}
            />
          </div>
        ))}
        <p className={style["hint"]}>Each line is an expression. The score is hidden where all of them hold.</p>
      </div>
    </details>
  );
}

interface ScoreDialogProps {
  readonly place: Place;
  /** The score that is changed; null for a new one. */
  readonly score: Score | null;
  readonly scores: readonly Score[];
  readonly onClose: () => void;
}

export function ScoreDialog({ place, score, scores, onClose }: ScoreDialogProps) {
  const [edited, setEdited] = useState(() => (score === null ? NEW_SCORE : editedOf(score)));
  const change: Change = (part) => setEdited((before) => ({ ...before, ...part }));
  const typeId = useId();
  const submit = async (): Promise<string | null> => {
    const taken = scores.filter(({ id }) => id !== score?.id).map(({ name }) => name);
    const fault = faultIn(edited, taken) ?? (await unreadable(place.organization, edited));
    if (fault !== null) return fault;
    const record = recordOf(edited, score);
    await saveScore(place.organization, score?.id ?? null, score === null ? { ...record, project_id: place.projectId } : record);
    await cache.invalidateQueries({ queryKey: scoresQuery(place).queryKey });
    toast(`The score ${edited.name.trim()} is saved.`);
    return null;
  };
  return (
    <FormDialog title={score === null ? "New score" : `Score ${score.name}`} action={score === null ? "Create" : "Save"} form="wide" onClose={onClose} onSubmit={submit}>
      <Field label="Name" autoComplete="off" value={edited.name} onChange={(event) => change({ name: event.currentTarget.value })} />
      <Field label="Description" autoComplete="off" value={edited.description} onChange={(event) => change({ description: event.currentTarget.value })} />
      <div className={style["text"]}>
        <label htmlFor={typeId}>Type</label>
        <select
          id={typeId}
          value={edited.type}
          onChange={(event) => {
            const type = SCORE_TYPES.find((one) => one === event.currentTarget.value);
            if (type !== undefined) change({ type, destination: "" });
          }}
        >
          {SCORE_TYPES.map((type) => (
            <option key={type} value={type}>
              {TYPE_NAMES[type]}
            </option>
          ))}
        </select>
      </div>
      {hasCategories(edited.type) && <Categories {...{ edited, change }} />}
      <Destination {...{ edited, change }} />
      {!["weighted", "minimum", "maximum"].includes(edited.type) && <Asked {...{ edited, change, place }} />}
    </FormDialog>
  );
}
