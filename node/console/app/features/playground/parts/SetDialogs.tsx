// Dialogs that choose the rows and the scorers.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { PlayRows, PlayScorer } from "../../../api/playground";
import { ModelPicker } from "../../../design/ModelPicker";
import { exactCount } from "../../../lib/numbers";
import { GLOBALS, isJudgeName } from "../globals";
import { datasetsQuery, scorersIn } from "../queries";
import { ROWS_MAX } from "../rows";
import type { Desk } from "../useDesk";
import { Area } from "./Area";
import style from "./Dialogs.module.css";

interface DialogProps {
  readonly desk: Desk;
  readonly onClose: () => void;
}

/** Chooses a dataset, or types one input. */
export function RowsDialog({ desk, onClose }: DialogProps) {
  const before = desk.playground.rows;
  const datasets = useQuery(datasetsQuery(desk.place)).data ?? [];
  const [dataset, setDataset] = useState(before.kind === "dataset" ? before.id : "");
  const [input, setInput] = useState(before.kind === "input" ? before.input : "");
  const [expected, setExpected] = useState(before.kind === "input" ? before.expected : "");
  const submit = (): null => {
    const found = datasets.find(({ id }) => id === dataset);
    const rows: PlayRows = found === undefined ? { kind: "input", input, expected } : { kind: "dataset", id: found.id, name: found.name };
    const isKept = before.kind === "dataset" && before.id === dataset;
    if (!isKept) desk.editing.edit((one) => ({ ...one, rows }));
    return null;
  };
  return (
    <FormDialog title="Rows" action="Use" onSubmit={submit} onClose={onClose}>
      <label className={style["area"]}>
        Rows
        <select value={dataset} onChange={(event) => setDataset(event.currentTarget.value)}>
          <option value="">One input, typed here</option>
          {datasets.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {dataset === "" ? (
        <>
          <Area
            label="Input"
            hint="Text or JSON. Prompts name it {{input}}; the members of an object have their own names too."
            value={input}
            rows={5}
            onText={setInput}
          />
          <Area label="Expected" hint="What scorers compare the output with. It may be empty." value={expected} rows={3} onText={setExpected} />
        </>
      ) : (
        <p className={style["hint"]}>The first {exactCount(ROWS_MAX)} rows are shown and run.</p>
      )}
    </FormDialog>
  );
}

interface OptionsProps {
  readonly title: string;
  readonly options: readonly { readonly scorer: PlayScorer; readonly text: string }[];
  readonly chosen: readonly PlayScorer[];
  readonly onChosen: (chosen: readonly PlayScorer[]) => void;
}

const isSame = (a: PlayScorer, b: PlayScorer): boolean =>
  a.kind === "saved" && b.kind === "saved" ? a.id === b.id : a.kind === b.kind && a.name === b.name;

function Options({ title, options, chosen, onChosen }: OptionsProps) {
  if (options.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      {options.map(({ scorer, text }) => {
        const isChosen = chosen.some((one) => isSame(one, scorer));
        return (
          <label key={scorer.kind === "saved" ? scorer.id : scorer.name}>
            <input
              type="checkbox"
              checked={isChosen}
              onChange={() => onChosen(isChosen ? chosen.filter((one) => !isSame(one, scorer)) : [...chosen, scorer])}
            />
            <span>
              {scorer.name} <span className={style["hint"]}>{text}</span>
            </span>
          </label>
        );
      })}
    </>
  );
}

export function ScorersDialog({ desk, onClose }: DialogProps) {
  const [chosen, setChosen] = useState(desk.playground.scorers);
  const [judge, setJudge] = useState(desk.playground.judge);
  const saved = scorersIn(desk.records.data ?? []);
  // what the playground has is shown, too, while it is not known, and where it has gone
  const lone = desk.playground.scorers.filter((one) => one.kind === "saved" && !saved.some((other) => isSame(one, other)));
  const goneText = desk.records.data === undefined ? "" : "no longer in the project";
  const ofProject = [...saved.map((scorer) => ({ scorer, text: "" })), ...lone.map((scorer) => ({ scorer, text: goneText }))];
  const unknown = desk.playground.scorers.filter((one) => one.kind === "global" && !GLOBALS.some(({ name }) => name === one.name));
  const ofAll = [
    ...unknown.map((scorer) => ({ scorer, text: "not known to the console" })),
    ...GLOBALS.map(({ name, text }) => ({ scorer: { kind: "global", name } as const, text })),
  ];
  const submit = (): null => {
    desk.editing.edit((before) => ({ ...before, scorers: chosen, judge }));
    return null;
  };
  return (
    <FormDialog title="Scorers" action="Use" onSubmit={submit} onClose={onClose}>
      <div className={style["options"]}>
        <Options title="Of this project" options={ofProject} chosen={chosen} onChosen={setChosen} />
        <Options title="Of every project" options={ofAll} chosen={chosen} onChosen={setChosen} />
      </div>
      {chosen.some((one) => one.kind === "global" && isJudgeName(one.name)) && (
        <ModelPicker label="Model of the judges" value={judge} models={desk.models} onChange={setJudge} />
      )}
      <p className={style["hint"]}>Each cell is scored when its answer is there. Cells that ran before are scored by “Run the missing scorers”.</p>
    </FormDialog>
  );
}
