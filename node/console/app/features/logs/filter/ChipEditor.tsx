// Makes or changes a condition: first its field, then the operator, then values with their counts.
import { useState, type KeyboardEvent } from "react";
import { path as pathText, ranked, type Condition, type KnownField, type Scalar } from "../../../btql";
import { Button } from "../../../design/Button";
import { Combobox, type ComboOption } from "../../../design/Combobox";
import style from "./ChipEditor.module.css";
import { fieldKey, mergedFields } from "./fields";
import { choiceOf, choicesFor, conditionBy, typedOf, type OperatorChoice } from "./operators";

import type { Scope } from "./scope";
import { ValueStep } from "./ValueStep";

export type StepName = "field" | "operator" | "value";

export interface ChipEditorProps {
  /** What values are counted in: the rows that the other conditions find. */
  readonly scope: Scope;
  readonly fields: readonly KnownField[];
  /** The condition that is changed, or null for a new one. */
  readonly before: Condition | null;
  /** The field of a new condition, if that is chosen already. */
  readonly field?: KnownField | null;
  readonly onDone: (condition: Condition) => void;
}

const fieldOf = (fields: readonly KnownField[], condition: Condition | null): KnownField | null => {
  if (condition === null) return null;
  const key = fieldKey(condition.path);
  return fields.find((one) => fieldKey(one.path) === key) ?? { path: condition.path, type: "unknown", values: [] };
};

function fieldOptions(fields: readonly KnownField[], typed: string): readonly ComboOption[] {
  return ranked(fields, typed, (field) => pathText(field.path))
    .slice(0, 100)
    .map((field) => ({
      id: fieldKey(field.path),
      label: pathText(field.path),
      detail: field.type === "unknown" ? "" : field.type,
    }));
}

interface FieldStepProps {
  readonly fields: readonly KnownField[];
  readonly onField: (field: KnownField) => void;
}

function FieldStep({ fields, onField }: FieldStepProps) {
  const [typed, setTyped] = useState("");
  const options = fieldOptions(fields, typed);
  return (
    <Combobox
      form="inline"
      label="Field"
      placeholder="Field"
      value={typed}
      onValue={setTyped}
      options={options}
      isFirstCurrent
      onPick={({ id }) => {
        const field = fields.find((one) => fieldKey(one.path) === id);
        if (field !== undefined) onField(field);
      }}
      whenEmpty={<p className={style["none"]}>No field has “{typed}” in its name.</p>}
    />
  );
}

interface OperatorStepProps {
  readonly field: KnownField;
  readonly onOperator: (by: OperatorChoice) => void;
}

function OperatorStep({ field, onOperator }: OperatorStepProps) {
  const [typed, setTyped] = useState("");
  const choices = choicesFor(field.type);
  const options = ranked(choices, typed, (by) => by.label).map((by) => ({ id: by.id, label: by.label }));
  return (
    <Combobox
      form="inline"
      label="Operator"
      placeholder="Operator"
      value={typed}
      onValue={setTyped}
      options={options}
      isFirstCurrent
      onPick={({ id }) => {
        const by = choices.find((one) => one.id === id);
        if (by !== undefined) onOperator(by);
      }}
      whenEmpty={<p className={style["none"]}>No operator has “{typed}” in its name.</p>}
    />
  );
}

interface CrumbsProps {
  readonly field: KnownField | null;
  readonly by: OperatorChoice | null;
  readonly step: StepName;
  readonly go: (step: StepName) => void;
}

/** What is chosen so far. A press on a part chooses it anew. */
function Crumbs({ field, by, step, go }: CrumbsProps) {
  if (field === null || step === "field") return null;
  return (
    <div className={style["crumbs"]}>
      <button type="button" className={style["crumb"]} title="Choose another field" onClick={() => go("field")}>
        {pathText(field.path)}
      </button>
      {by !== null && step === "value" && (
        <button type="button" className={style["crumb"]} title="Choose another operator" onClick={() => go("operator")}>
          {by.label}
        </button>
      )}
    </div>
  );
}

interface SpanChoiceProps {
  readonly span: Condition["span"];
  readonly onSpan: (span: Condition["span"]) => void;
}

const SPANS = [
  ["same", "The span that fulfils the others"],
  ["some", "Any span of the trace"],
  ["no", "No span of the trace"],
] as const;

function SpanChoice({ span, onSpan }: SpanChoiceProps) {
  return (
    <label className={style["span"]}>
      <span>Has to hold for</span>
      <select value={span} onChange={(event) => {
        const chosen = SPANS.find(([id]) => id === event.currentTarget.value);
        if (chosen !== undefined) onSpan(chosen[0]);
      }}>
        {SPANS.map(([id, title]) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

function firstStep(field: KnownField | null, by: OperatorChoice | null): StepName {
  if (field === null) return "field";
  return by === null || by.takes === "none" ? "operator" : "value";
}

export function ChipEditor({ scope, fields: found, before, field: chosen = null, onDone }: ChipEditorProps) {
  const fields = mergedFields(found);
  const [field, setField] = useState<KnownField | null>(() => chosen ?? fieldOf(fields, before));
  const [by, setBy] = useState<OperatorChoice | null>(() => (before === null ? null : choiceOf(before)));
  const [step, go] = useState<StepName>(firstStep(field, by));
  const [span, setSpan] = useState<Condition["span"]>(before?.span ?? "same");
  const finish = (by: OperatorChoice, values: readonly Scalar[]): void => {
    if (field !== null) onDone(conditionBy(field.path, by, values, span));
  };
  const back = (event: KeyboardEvent<HTMLElement>): void => {
    const isAtStart = event.target instanceof HTMLInputElement && event.target.value === "";
    if (event.key !== "Backspace" || !isAtStart || step === "field") return;
    event.preventDefault();
    go(step === "value" && by !== null ? "operator" : "field");
  };
  return (
    <div className={style["editor"]} onKeyDown={back}>
      <Crumbs {...{ field, by, step, go }} />
      {(step === "field" || field === null) && (
        <FieldStep
          fields={fields}
          onField={(field) => {
            setField(field);
            setBy(null);
            go("operator");
          }}
        />
      )}
      {step === "operator" && field !== null && (
        <OperatorStep
          key={fieldKey(field.path)}
          field={field}
          onOperator={(by) => {
            setBy(by);
            if (by.takes === "none") finish(by, []);
            else go("value");
          }}
        />
      )}
      {step === "value" && field !== null && by !== null && (
        <ValueStep
          scope={scope}
          field={field}
          by={by}
          start={before === null || choiceOf(before)?.id !== by.id ? null : { typed: typedOf(before), values: before.values }}
          onDone={(values) => finish(by, values)}
        />
      )}
      {before !== null && scope.shape === "traces" && (
        <div className={style["foot"]}>
          <SpanChoice span={span} onSpan={setSpan} />
          {span !== before.span && <Button onClick={() => onDone({ ...before, span })}>Apply</Button>}
        </div>
      )}
    </div>
  );
}
