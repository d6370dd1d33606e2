// The form of a prompt: its model and parameters, its messages, and the choices of a judge.
import { useQuery } from "@tanstack/react-query";
import { MessageEditor } from "../../../design/MessageEditor";
import { JsonField } from "../../../design/MessageEditorFields";
import { isCompletion, type PromptFields } from "../../../design/MessageEditorLogic";
import { ModelParameters, ModelPicker } from "../../../design/ModelPicker";
import { parametersInWords } from "../../../design/ModelPickerLogic";
import {
  formatIn,
  isChoiceScores,
  modelIn,
  paramsIn,
  parserIn,
  promptIn,
  toolsIn,
  variablesIn,
  withFormat,
  withModel,
  withParams,
  withPrompt,
  withTools,
  withType,
} from "../draft";
import { modelsQuery } from "../queries";
import type { Desk } from "../useDesk";
import style from "./parts.module.css";

const asScores = (value: unknown): { readonly value: PromptFields } | string =>
  isChoiceScores(value) ? { value } : "Each choice has a score from 0 to 1.";

interface JudgeProps {
  readonly parser: PromptFields;
  readonly isReadOnly: boolean;
  readonly onChange: (parser: PromptFields) => void;
}

/** How the answer of a judge becomes a score. */
function Judge({ parser, isReadOnly, onChange }: JudgeProps) {
  return (
    <fieldset className={style["judge"]}>
      <legend>Choices of the judge</legend>
      <JsonField
        label="Scores of the choices"
        value={parser["choice_scores"] ?? {}}
        read={asScores}
        isReadOnly={isReadOnly}
        onValue={(scores) => onChange({ ...parser, choice_scores: scores })}
      />
      <label className={style["check"]}>
        <input
          type="checkbox"
          checked={parser["use_cot"] === true}
          disabled={isReadOnly}
          onChange={(event) => onChange({ ...parser, use_cot: event.currentTarget.checked })}
        />
        Let the model give its reasons before it chooses
      </label>
    </fieldset>
  );
}

const FORMATS = [["mustache", "Mustache"], ["nunjucks", "Nunjucks"], ["none", "None"]] as const;

function Kinds({ desk, isReadOnly }: FormProps) {
  const { data, change } = desk;
  return (
    <>
      <label>
        Kind
        <select
          disabled={isReadOnly}
          value={isCompletion(promptIn(data)) ? "completion" : "chat"}
          onChange={(event) => change(withType(data, event.currentTarget.value))}
        >
          <option value="chat">Chat</option>
          <option value="completion">Completion</option>
        </select>
      </label>
      <label>
        Template
        <select
          disabled={isReadOnly}
          value={formatIn(data)}
          onChange={(event) => {
            const [format] = FORMATS.find(([one]) => one === event.currentTarget.value) ?? FORMATS[0];
            change(withFormat(data, format));
          }}
        >
          {FORMATS.map(([one, title]) => (
            <option key={one} value={one}>
              {title}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

interface FormProps {
  readonly desk: Desk;
  readonly isReadOnly: boolean;
}

export function Form({ desk, isReadOnly }: FormProps) {
  const { data, change } = desk;
  const models = useQuery({ ...modelsQuery(desk.place), enabled: !isReadOnly }).data ?? [];
  const parser = parserIn(data);
  const params = paramsIn(data);
  const variables = variablesIn(data);
  return (
    <div className={style["form"]}>
      <div className={style["model"]}>
        <ModelPicker value={modelIn(data)} models={models} isReadOnly={isReadOnly} onChange={(model) => change(withModel(data, model))} />
        <Kinds {...{ desk, isReadOnly }} />
      </div>
      <details className={style["params"]}>
        <summary>
          Parameters and tools <span className={style["faint"]}>{parametersInWords(params)}</span>
        </summary>
        <ModelParameters
          value={params}
          isReadOnly={isReadOnly}
          onChange={(next) => change(withParams(data, next))}
          tools={toolsIn(data)}
          onTools={(tools) => change(withTools(data, tools))}
        />
      </details>
      <MessageEditor
        label="Messages of the prompt"
        value={promptIn(data)}
        format={formatIn(data)}
        isReadOnly={isReadOnly}
        onChange={(prompt) => change(withPrompt(data, prompt))}
      />
      {parser !== null && <Judge {...{ parser, isReadOnly }} onChange={(next) => change({ ...data, parser: next })} />}
      {variables.length > 0 && (
        <p className={style["hint"]}>
          Variables: <span>{variables.map((name) => `{{${name}}}`).join(" ")}</span>
        </p>
      )}
    </div>
  );
}
