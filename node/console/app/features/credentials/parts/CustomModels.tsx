// The models that a provider has besides those of the catalog, with their formats and prices.
import { Button, IconButton } from "../../../design/Button";
import field from "../../../design/Field.module.css";
import { EMPTY_MODEL, FLAVORS, FORMATS, type CustomModel } from "../form";
import style from "./Form.module.css";

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly known: readonly string[];
  readonly onChoose: (value: string) => void;
}

function Choice({ label, value, known, onChoose }: ChoiceProps) {
  return (
    <select aria-label={label} title={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {(value === "" ? ["", ...known] : known).map((one) => (
        <option key={one} value={one}>
          {one === "" ? "as kept" : one}
        </option>
      ))}
    </select>
  );
}

interface ModelProps {
  readonly model: CustomModel;
  readonly number: number;
  readonly onChange: (changed: Partial<CustomModel>) => void;
  readonly onRemove: () => void;
}

function Model({ model, number, onChange, onRemove }: ModelProps) {
  const text = (key: "name" | "input" | "output", label: string, placeholder: string) => (
    <input
      aria-label={`${label} of model ${number}`}
      title={label}
      placeholder={placeholder}
      autoComplete="off"
      spellCheck={false}
      inputMode={key === "name" ? "text" : "decimal"}
      value={model[key]}
      onChange={(event) => onChange({ [key]: event.currentTarget.value })}
    />
  );
  return (
    <div className={style["model"]} role="group" aria-label={`Model ${number}`}>
      {text("name", "Name", "Name of the model")}
      <Choice label={`Format of model ${number}`} value={model.format} known={FORMATS} onChoose={(format) => onChange({ format })} />
      <Choice label={`Kind of model ${number}`} value={model.flavor} known={FLAVORS} onChoose={(flavor) => onChange({ flavor })} />
      {text("input", "Dollars per million input tokens", "$ in")}
      {text("output", "Dollars per million output tokens", "$ out")}
      <IconButton icon="close" label={`Remove model ${number}`} onClick={onRemove} />
    </div>
  );
}

interface CustomModelsProps {
  readonly models: readonly CustomModel[];
  readonly onChange: (models: readonly CustomModel[]) => void;
}

export function CustomModels({ models, onChange }: CustomModelsProps) {
  const changed = (place: number, change: Partial<CustomModel>): readonly CustomModel[] =>
    models.map((model, at) => (at === place ? { ...model, ...change } : model));
  return (
    <fieldset className={style["models"]}>
      <legend className={field["label"]}>Custom models</legend>
      <p className={field["hint"]}>Models that the catalog does not know. Prices are dollars per million tokens of input and output.</p>
      {models.map((model, place) => (
        <Model
          key={place}
          model={model}
          number={place + 1}
          onChange={(change) => onChange(changed(place, change))}
          onRemove={() => onChange(models.filter((_, at) => at !== place))}
        />
      ))}
      <div>
        <Button icon="plus" onClick={() => onChange([...models, EMPTY_MODEL])}>
          Add a model
        </Button>
      </div>
    </fieldset>
  );
}
