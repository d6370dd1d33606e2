// One budget: what it is about, and how much of each of its limits is used.
import { Chip } from "../../../design/Chip";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { Meter } from "../../../design/Meter";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { LIMIT_NAMES, LIMITS, usedText, WINDOW_NAMES, type Budget, type BudgetUsage } from "../budget";
import style from "../section.module.css";
import { shareOf, toneOf } from "../stored";

interface BudgetItemProps {
  readonly budget: Budget;
  readonly words: string;
  /** Null while it is not known. */
  readonly usage: BudgetUsage | null;
  readonly onEdit: () => void;
  readonly onDelete: () => void;
}

function Limits({ budget, usage }: Pick<BudgetItemProps, "budget" | "usage">) {
  return (
    <ul className={style["limits"]}>
      {LIMITS.map((limit) => {
        const allowed = budget.limits[limit];
        if (allowed === null) return null;
        const used = usage?.used[limit];
        const share = shareOf(used?.spent ?? 0, allowed);
        return (
          <li key={limit} className={style["limit"]}>
            <span>{LIMIT_NAMES[limit]}</span>
            <Meter share={share} more={shareOf(used?.reserved ?? 0, allowed)} tone={toneOf(share)} />
            <span className={style["said"]}>{used === undefined ? "Not read yet" : usedText(limit, used, allowed)}</span>
          </li>
        );
      })}
    </ul>
  );
}

export function BudgetItem({ budget, words, usage, onEdit, onDelete }: BudgetItemProps) {
  const ends = parseMoment(usage?.ends ?? null);
  return (
    <li className={style["item"]} aria-label={words}>
      <div className={style["title"]}>
        <b>{words}</b>
        <span>{WINDOW_NAMES[budget.window]}</span>
        {usage?.isExceeded === true && <Chip tone="bad"><Icon name="warning" />Exceeded</Chip>}
        <Chip>{budget.isStrict ? "Refuses calls" : "Only reports"}</Chip>
        {ends !== null && (
          <span className={style["said"]} title={fullMoment(ends)}>
            until {shortMoment(ends, now.value, preferences.value.zone).replace(/\.\d+$/, "")}
          </span>
        )}
      </div>
      <Menu
        label={`Actions of the budget of ${words}`}
        isAlone
        button={<Icon name="more" />}
        items={[
          { id: "edit", title: "Edit", run: onEdit },
          { id: "delete", title: "Delete", run: onDelete },
        ]}
      />
      <Limits budget={budget} usage={usage} />
    </li>
  );
}
