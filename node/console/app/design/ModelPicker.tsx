// The fields of a model call: which model, and its parameters. What has no field is shown as JSON and kept.
import { useEffect, useId, useState } from "react";
import { numeric } from "../lib/json";
import { Combobox, type ComboOption } from "./Combobox";
import { Field } from "./Field";
import { JsonField } from "./MessageEditorFields";
import { isFields, type PromptFields } from "./MessageEditorLogic";
import style from "./ModelPicker.module.css";
import {
  EFFORTS,
  numberText,
  isTools,
  NUMBERS,
  otherParameters,
  readNumber,
  readTools,
  responseKind,
  TOOL_CHOICES,
  withOtherParameters,
  withParameter,
  withResponseKind,
  writeTools,
  type NumberParameter,
} from "./ModelPickerLogic";

interface ModelPickerProps {
  readonly label?: string;
  readonly value: string;
  readonly onChange: (model: string) => void;
  /** The models to choose from. Any other can be typed. */
  readonly models: readonly string[];
  readonly isReadOnly?: boolean;
  readonly isLabelShown?: boolean;
}

const MOST_OPTIONS = 50;

const optionsFor = (models: readonly string[], typed: string | null): readonly ComboOption[] => {
  const words = (typed ?? "").toLowerCase();
  return models
    .filter((model) => model.toLowerCase().includes(words))
    .slice(0, MOST_OPTIONS)
    .map((model) => ({ id: model, label: model }));
};

export function ModelPicker({ label = "Model", value, onChange, models, isReadOnly = false, isLabelShown = true }: ModelPickerProps) {
  const id = useId();
  // what was typed since the field was entered, which the options are filtered by
  const [typed, setTyped] = useState<string | null>(null);
  if (isReadOnly) return <Field label={label} value={value} readOnly />;
  return (
    <div className={style["model"]} onBlur={() => setTyped(null)}>
      {isLabelShown && (
        <label htmlFor={id} className={style["label"]}>
          {label}
        </label>
      )}
      <div className={style["box"]}>
        <Combobox
          id={id}
          form="popup"
          label={label}
          placeholder="Name of a model"
          value={value}
          options={optionsFor(models, typed)}
          onValue={(text) => {
            setTyped(text);
            onChange(text);
          }}
          onPick={(option) => {
            setTyped(null);
            onChange(option.id);
          }}
        />
      </div>
    </div>
  );
}

interface NumberFieldProps {
  readonly parameter: NumberParameter;
  readonly value: unknown;
  readonly isReadOnly: boolean;
  readonly onNumber: (value: number | undefined) => void;
}

function NumberField({ parameter, value, isReadOnly, onNumber }: NumberFieldProps) {
  const given = numberText(value);
  const [text, setText] = useState(given);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    const read = readNumber(text, parameter);
    const isTyped = "value" in read && (read.value ?? null) === numeric(value);
    if (!isTyped) {
      setText(given);
      setFault(null);
    }
  }, [given]);
  return (
    <Field
      label={parameter.title}
      inputMode="decimal"
      autoComplete="off"
      placeholder="Default"
      readOnly={isReadOnly}
      value={text}
      fault={fault}
      onChange={(event) => {
        const next = event.currentTarget.value;
        const read = readNumber(next, parameter);
        setText(next);
        setFault("fault" in read ? read.fault : null);
        if ("value" in read) onNumber(read.value);
      }}
    />
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly (readonly [value: string, title: string])[];
  readonly isReadOnly: boolean;
  readonly onChoose: (value: string) => void;
}

function Choice({ label, value, choices, isReadOnly, onChoose }: ChoiceProps) {
  const all = choices.some(([one]) => one === value) ? choices : [...choices, [value, value] as const];
  return (
    <label className={style["model"]}>
      <span className={style["label"]}>{label}</span>
      <select className={style["box"]} value={value} disabled={isReadOnly} onChange={(event) => onChoose(event.currentTarget.value)}>
        {all.map(([one, title]) => (
          <option key={one} value={one}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

interface ModelParametersProps {
  readonly value: PromptFields;
  readonly onChange: (params: PromptFields) => void;
  readonly isReadOnly?: boolean;
  /** The tools of the prompt as it keeps them: the JSON text of a list. Absent if they are not edited here. */
  readonly tools?: string;
  readonly onTools?: (tools: string) => void;
}

const KINDS = [["text", "Text"], ["json_object", "JSON"], ["json_schema", "JSON by a schema"]] as const;

const titled = (words: readonly string[]): ChoiceProps["choices"] => [["", "Default"], ...words.map((word) => [word, word] as const)];

const asFields = (value: unknown): { readonly value: PromptFields } | string =>
  isFields(value) ? { value } : "This has to be a JSON object.";

const asTools = (value: unknown): { readonly value: unknown } | string =>
  isTools(value) ? { value } : "Tools are a list of JSON objects.";

function Choices({ value: params, onChange, isReadOnly = false }: ModelParametersProps) {
  const setWord = (key: string) => (word: string) => onChange(withParameter(params, key, word === "" ? undefined : word));
  const wordOf = (key: string): string => (typeof params[key] === "string" ? params[key] : "");
  const isCached = params["use_cache"];
  return (
    <>
      <Choice label="Answer" value={responseKind(params)} choices={KINDS} isReadOnly={isReadOnly} onChoose={(kind) => onChange(withResponseKind(params, kind))} />
      <Choice label="Reasoning effort" value={wordOf("reasoning_effort")} choices={titled(EFFORTS)} isReadOnly={isReadOnly} onChoose={setWord("reasoning_effort")} />
      <Choice label="Tool choice" value={wordOf("tool_choice")} choices={titled(TOOL_CHOICES)} isReadOnly={isReadOnly} onChoose={setWord("tool_choice")} />
      <Choice
        label="Cached answers"
        value={typeof isCached === "boolean" ? String(isCached) : ""}
        choices={[["", "Default"], ["true", "Use"], ["false", "Never"]]}
        isReadOnly={isReadOnly}
        onChoose={(word) => onChange(withParameter(params, "use_cache", word === "" ? undefined : word === "true"))}
      />
    </>
  );
}

export function ModelParameters(props: ModelParametersProps) {
  const { value: params, onChange, isReadOnly = false, tools, onTools } = props;
  return (
    <div className={style["parameters"]} role="group" aria-label="Parameters of the model">
      {NUMBERS.map((parameter) => (
        <NumberField
          key={parameter.key}
          parameter={parameter}
          value={params[parameter.key]}
          isReadOnly={isReadOnly}
          onNumber={(number) => onChange(withParameter(params, parameter.key, number))}
        />
      ))}
      <Choices {...props} />
      {responseKind(params) === "json_schema" && (
        <div className={style["long"]}>
          <JsonField label="Form of the answer" value={params["response_format"]} read={asFields} isReadOnly={isReadOnly} onValue={(format) => onChange({ ...params, response_format: format })} />
        </div>
      )}
      {tools !== undefined && (
        <div className={style["long"]}>
          <JsonField<unknown> label="Tools" value={readTools(tools)} read={asTools} whenEmpty={{ value: [] }} rows={1} isReadOnly={isReadOnly} onValue={(list) => onTools?.(writeTools(list))} />
        </div>
      )}
      <div className={style["long"]}>
        <JsonField label="Other parameters" value={otherParameters(params)} read={asFields} whenEmpty={{ value: {} }} rows={1} isReadOnly={isReadOnly} onValue={(other) => onChange(withOtherParameters(params, other))} />
      </div>
    </div>
  );
}
