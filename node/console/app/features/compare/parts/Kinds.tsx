// What of the rows is shown: all, or those of one kind.
import type { Compared } from "../../../api/comparison";
import { classes } from "../../../design/classes";
import { exactCount } from "../../../lib/numbers";
import { measureOf } from "../measures";
import { changeOf, mainComparison } from "../summaries";
import { KINDS, type ShownKind } from "../url";
import style from "./Kinds.module.css";

const TITLES: Readonly<Record<ShownKind, string>> = {
  all: "All",
  down: "↓ Down",
  up: "↑ Up",
  same: "= Same",
  new: "New",
  missing: "Missing",
  errors: "Errors",
};

/** How many rows of a kind there are; null if nobody counted them. */
function countOf(kind: ShownKind, compared: Compared, score: string): number | null {
  const comparison = mainComparison(compared);
  const change = comparison === null || score === "" ? null : changeOf(comparison, measureOf(score));
  switch (kind) {
    case "all":
      return null;
    case "up":
    case "down":
    case "same":
      return change?.[kind] ?? 0;
    case "new":
      return comparison?.added ?? 0;
    case "missing":
      return comparison?.missing ?? 0;
    case "errors":
      return compared.experiments[0]?.errors ?? 0;
  }
}

interface KindsProps {
  readonly compared: Compared;
  readonly score: string;
  readonly only: ShownKind;
  readonly onOnly: (only: ShownKind) => void;
}

export function Kinds({ compared, score, only, onOnly }: KindsProps) {
  const hasBase = mainComparison(compared) !== null;
  const shown = KINDS.filter((kind) => hasBase || kind === "all" || kind === "errors");
  return (
    <div className={style["kinds"]} role="group" aria-label="Rows of a kind">
      {shown.map((kind) => {
        const count = countOf(kind, compared, score);
        return (
          <button
            key={kind}
            type="button"
            className={classes(style["kind"], kind === only && style["on"])}
            aria-pressed={kind === only}
            onClick={() => onOnly(kind === only ? "all" : kind)}
          >
            {TITLES[kind]}
            {count !== null && <span className={style["count"]}> {exactCount(count)}</span>}
          </button>
        );
      })}
    </div>
  );
}
