// Sentences about what is shown, and about why nothing is.
import type { ReactNode } from "react";
import type { Compared } from "../../../api/comparison";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { FailureLine } from "../../../design/FailureLine";
import type { Fault } from "../faults";
import type { CompareState } from "../url";
import type { Judging } from "../useStatistics";
import style from "./Compare.module.css";

/** A sentence about what is shown, with a way back. */
function Note({ children, action, onAction }: { readonly children: ReactNode; readonly action?: string; readonly onAction?: () => void }) {
  return (
    <p className={style["note"]}>
      {children}
      {action !== undefined && <Button onClick={onAction}>{action}</Button>}
    </p>
  );
}

interface NotesProps {
  readonly state: CompareState;
  /** What of the address names no experiment. */
  readonly unknown: readonly string[];
  readonly compared: Compared | undefined;
  readonly fault: Fault | null;
  readonly change: (part: Partial<CompareState>) => void;
  readonly judging: Judging;
}

export function Notes({ state, unknown, compared, fault, change, judging }: NotesProps) {
  const known = state.compared.filter((name) => !unknown.includes(name));
  return (
    <>
      {unknown.length > 0 && (
        <Note action="Compare without" onAction={() => change({ compared: known })}>
          The project has no experiment {unknown.join(", ")} that you may see.
        </Note>
      )}
      {compared?.isTruncated === true && <Note>An experiment has more than 20,000 rows. The first 20,000 are compared.</Note>}
      {fault?.at === "group" && (
        <Note action="Show without groups" onAction={() => change({ group: "" })}>
          The path {state.group} cannot be read. {fault.message}
        </Note>
      )}
      {compared !== undefined && judging.problem !== null && (
        <div className={style["note"]}>
          <FailureLine words="The statistics could not be read" problem={judging.problem} onRetry={judging.again} />
        </div>
      )}
    </>
  );
}

/** Why there are no rows, and the way out. */
export function NoRows({ state, change }: Pick<NotesProps, "state" | "change">) {
  const isNarrowed = state.filter !== "" || state.only !== "all";
  const all = <Button onClick={() => change({ filter: "", only: "all" })}>Show all rows</Button>;
  if (isNarrowed) return <Empty action={all}>No row is of this kind and fulfils the filter.</Empty>;
  if (state.version !== "") return <Empty>There were no rows at that time.</Empty>;
  return <Empty>The experiment has no rows yet. They appear when an evaluation writes them.</Empty>;
}

/** What stands in the place of the rows when the request cannot be read, and none was before it. */
export function Unread({ fault, change }: Pick<NotesProps, "change"> & { readonly fault: Fault }) {
  return (
    <Empty action={<Button onClick={() => change({ filter: "", group: "" })}>Show all rows</Button>}>
      The rows are not shown, because the {fault.at === "filter" ? "filter" : "path of the groups"} cannot be read.
    </Empty>
  );
}
