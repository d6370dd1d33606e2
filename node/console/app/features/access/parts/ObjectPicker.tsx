// The choice of the object whose access is asked about: its kind, its project where it has one, and the object.
import { KINDS, type Kind, type Named } from "../../../api/access";
import style from "../access.module.css";
import { isInProject, isOfProject, isSingle } from "../queries";
import type { AccessState } from "../url";

interface ObjectPickerProps {
  readonly state: AccessState;
  readonly projects: readonly Named[];
  readonly objects: readonly Named[];
  readonly isReading: boolean;
  readonly onChange: (changed: Partial<AccessState>) => void;
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly Named[];
  readonly isReading?: boolean;
  readonly onChoose: (id: string) => void;
}

/** A choice by name. What is chosen stays shown, even if it is not in the list. */
function Choice({ label, value, choices, isReading = false, onChoose }: ChoiceProps) {
  const isListed = choices.some(({ id }) => id === value);
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {value === "" && <option value="">Choose one</option>}
        {value !== "" && !isListed && <option value={value}>{isReading ? "" : value}</option>}
        {choices.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

const KIND_CHOICES: readonly Named[] = KINDS.map(([id, name]) => ({ id, name }));

const toKind = (id: string): Kind => KINDS.find(([kind]) => kind === id)?.[0] ?? "organization";

export function ObjectPicker({ state, projects, objects, isReading, onChange }: ObjectPickerProps) {
  const { kind, id, project } = state;
  return (
    <div className={style["picker"]}>
      <Choice
        label="Kind of object"
        value={kind}
        choices={KIND_CHOICES}
        onChoose={(next) => {
          const to = toKind(next);
          const keepsId = isOfProject(kind) && isOfProject(to);
          const at = isOfProject(kind) ? id : project;
          onChange({ kind: to, id: keepsId || isOfProject(to) ? at : "", project: isInProject(to) ? at : "", who: "" });
        }}
      />
      {isInProject(kind) && (
        <Choice label="Project" value={project} choices={projects} isReading={isReading} onChoose={(next) => onChange({ project: next, id: "", who: "" })} />
      )}
      {!isSingle(kind) && (!isInProject(kind) || project !== "" || id !== "") && (
        <Choice
          label={isOfProject(kind) ? "Project" : "Object"}
          value={id}
          choices={isOfProject(kind) ? projects : objects}
          isReading={isReading}
          onChoose={(next) => onChange({ id: next, who: "" })}
        />
      )}
    </div>
  );
}
