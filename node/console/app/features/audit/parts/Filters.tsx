// What the audit log is filtered by: actor, action, kind of object, object, and range.
import type { AuditCount } from "../../../api/audit";
import { Icon } from "../../../design/Icon";
import { TimeRange } from "../../../design/TimeRange";
import { shortCount } from "../../../lib/numbers";
import type { AuditState } from "../url";
import { actionWords, actorWords, kindWords, type Names } from "../words";
import style from "./Filters.module.css";

export const OBJECT_FILTER_ID = "audit-object";

interface Option {
  readonly value: string;
  readonly title: string;
  readonly count: number;
}

/** The values of one dimension with their counts, by title. The chosen one is there even if nothing has it. */
function optionsOf(
  counts: readonly AuditCount[],
  chosen: string,
  valueOf: (count: AuditCount) => string,
  titleOf: (count: AuditCount) => string,
): readonly Option[] {
  const found = new Map<string, Option>();
  for (const count of counts) {
    const value = valueOf(count);
    found.set(value, { value, title: titleOf(count), count: (found.get(value)?.count ?? 0) + count.count });
  }
  if (chosen !== "" && !found.has(chosen)) found.set(chosen, { value: chosen, title: chosen, count: 0 });
  return [...found.values()].sort((a, b) => a.title.localeCompare(b.title, "en"));
}

interface ChoiceProps {
  readonly label: string;
  readonly all: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly onChoose: (value: string) => void;
}

function Choice({ label, all, value, options, onChoose }: ChoiceProps) {
  return (
    <select className={style["choice"]} aria-label={label} title={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">{all}</option>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.title} ({shortCount(option.count)})
        </option>
      ))}
    </select>
  );
}

interface FiltersProps {
  readonly state: AuditState;
  readonly counts: readonly AuditCount[];
  readonly names: Names;
  readonly change: (changed: Partial<AuditState>) => void;
}

export function Filters({ state, counts, names, change }: FiltersProps) {
  const person = ({ who, email }: AuditCount): string =>
    actorWords({ type: who, userId: email === null && !names.has(who) ? null : who, email }, names);
  return (
    <div role="search" aria-label="Audit log" className={style["filters"]}>
      <label className={style["object"]}>
        <Icon name="search" />
        <span className="only-spoken">Filter by the name or id of an object</span>
        <input
          id={OBJECT_FILTER_ID}
          type="search"
          placeholder="Name or id of an object"
          autoComplete="off"
          value={state.object}
          onChange={(event) => change({ object: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
      </label>
      <Choice
        label="Who"
        all="Everybody"
        value={state.who}
        options={optionsOf(counts, state.who, ({ who }) => who, person)}
        onChoose={(who) => change({ who })}
      />
      <Choice
        label="Action"
        all="All actions"
        value={state.action}
        options={optionsOf(counts, state.action, ({ action }) => action, ({ action }) => actionWords(action))}
        onChoose={(action) => change({ action })}
      />
      <Choice
        label="Kind of object"
        all="All kinds"
        value={state.kind}
        options={optionsOf(counts, state.kind, ({ kind }) => kind, ({ kind }) => kindWords(kind))}
        onChoose={(kind) => change({ kind })}
      />
      <TimeRange value={state.range} onChange={(range) => change({ range })} />
    </div>
  );
}
