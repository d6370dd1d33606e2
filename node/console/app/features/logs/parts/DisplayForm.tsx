// What a row is, how rows are grouped, which columns are shown, and as of when.
import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Button } from "../../../design/Button";
import { Field } from "../../../design/Field";
import { DENSITIES, prefer, preferences, type Density } from "../../../lib/preferences";
import { versionWords } from "../../../design/VersionControlWords";
import { BUILT_IN_IDS, columnOf, isBuiltIn, toggled } from "../columns";
import type { LogsState } from "../url";
import style from "./DisplayForm.module.css";

interface StateProps {
  readonly state: LogsState;
  readonly change: (changed: Partial<LogsState>) => void;
}

export interface DisplayProps extends StateProps {
  /** Opens the choice of a version. */
  readonly onChooseVersion: () => void;
}

const ROWS: Readonly<Record<Density, string>> = { compact: "Compact", regular: "Regular", roomy: "Roomy" };

interface ChoiceProps<Id extends string> {
  readonly title: string;
  readonly options: readonly (readonly [Id, string])[];
  readonly chosen: Id;
  readonly onChoose: (id: Id) => void;
}

function Choice<Id extends string>({ title, options, chosen, onChoose }: ChoiceProps<Id>) {
  const name = useId();
  return (
    <fieldset className={style["choice"]}>
      <legend>{title}</legend>
      {options.map(([id, words]) => (
        <label key={id} className={style["option"]}>
          <input type="radio" name={name} checked={id === chosen} onChange={() => onChoose(id)} />
          {words}
        </label>
      ))}
    </fieldset>
  );
}

interface LineProps {
  readonly label: string;
  readonly placeholder: string;
  readonly start: string;
  readonly action: string;
  readonly check?: (text: string) => string | null;
  readonly onDone: (text: string) => void;
  readonly children?: ReactNode;
}

/** A field with a button that applies it. */
function Line({ label, placeholder, start, action, check, onDone, children }: LineProps) {
  const [text, setText] = useState(start);
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const wrong = check?.(text.trim()) ?? null;
    setFault(wrong);
    if (wrong === null) onDone(text.trim());
  };
  return (
    <form className={style["line"]} noValidate onSubmit={submit}>
      <Field
        label={label}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        value={text}
        fault={fault}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button type="submit">{action}</Button>
      {children}
    </form>
  );
}

function Columns({ state, change }: StateProps) {
  const shown = state.columns.map((column) => column.id);
  const all = [...BUILT_IN_IDS, ...shown.filter((id) => !isBuiltIn(id))];
  return (
    <fieldset className={style["columns"]}>
      <legend>Columns</legend>
      {all.map((id) => (
        <label key={id} className={style["option"]} title={id}>
          <input
            type="checkbox"
            checked={shown.includes(id)}
            onChange={() => change({ columns: toggled(state.columns, id) })}
          />
          <span className={style["name"]}>{columnOf(id).title}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** What is typed: a further column, and the path of the groups. */
function Lines({ state, change, onDone }: StateProps & { readonly onDone: () => void }) {
  return (
    <>
      <Line
        key={`column ${state.columns.length}`}
        label="Add a column by its path"
        placeholder="metadata.user_id"
        start=""
        action="Add"
        check={(text) => (text === "" ? "Enter a path or an expression first." : null)}
        onDone={(text) => {
          if (!state.columns.some((column) => column.id === text)) change({ columns: toggled(state.columns, text) });
        }}
      />
      <Line
        key={`group ${state.group}`}
        label="Group by"
        placeholder="metadata.user_id"
        start={state.group}
        action="Group"
        onDone={(group) => {
          change({ group });
          onDone();
        }}
      />
    </>
  );
}

interface DisplayFormProps extends DisplayProps {
  /** Called when a choice ends the form. */
  readonly onDone: () => void;
  /** Called when the form is there, so that its panel can find its place. */
  readonly onShown: () => void;
}

export function DisplayForm({ state, change, onChooseVersion, onDone, onShown }: DisplayFormProps) {
  const density = preferences.value.density;
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    onShown();
    form.current?.querySelector<HTMLElement>("input:checked")?.focus();
  }, []);
  return (
    <div ref={form} className={style["form"]}>
      <Choice
        title="A row is a"
        options={[
          ["traces", "Trace"],
          ["spans", "Span"],
        ]}
        chosen={state.shape}
        onChoose={(shape) => change({ shape })}
      />
      <Choice
        title="Rows"
        options={DENSITIES.map((one) => [one, ROWS[one]] as const)}
        chosen={density}
        onChoose={(one) => prefer({ density: one })}
      />
      <Columns state={state} change={change} />
      <Lines {...{ state, change, onDone }} />
      <div className={style["version"]}>
        <span>As of {state.version === "" ? "now" : (versionWords(state.version) ?? state.version)}</span>
        <Button
          icon="history"
          onClick={() => {
            onDone();
            onChooseVersion();
          }}
        >
          Show an earlier state
        </Button>
      </div>
    </div>
  );
}
