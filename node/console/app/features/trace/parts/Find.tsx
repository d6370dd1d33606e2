// The field that finds spans by their names and contents, and goes from one to the next.
import type { KeyboardEvent, RefObject } from "react";
import { Button } from "../../../design/Button";
import { withKeys } from "../../../design/Kbd";
import type { TracePanelProps } from "../../../lib/trace";
import type { OpenTrace } from "../useTrace";
import style from "./Header.module.css";

export interface FindProps {
  readonly props: TracePanelProps;
  readonly trace: OpenTrace;
  readonly findField: RefObject<HTMLInputElement | null>;
}

/** Which match is selected, of how many. */
function countOf({ found, selected, isFinding, hasFailed }: OpenTrace): string {
  if (found === null) return "";
  const at = found.indexOf(selected);
  const count = found.length.toLocaleString("en-US");
  if (isFinding) return `${count}…`;
  return `${at < 0 ? "" : `${(at + 1).toLocaleString("en-US")}/`}${count}${hasFailed ? " by name" : ""}`;
}

export function Find({ props, trace, findField }: FindProps) {
  const { view, onView } = props;
  const { found } = trace;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") trace.step(found ?? [], event.shiftKey ? -1 : 1, "match");
    else if (event.key === "Escape" && view.find !== "") onView({ ...view, find: "" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div role="search" aria-label="Trace" className={style["find"]}>
      <input
        ref={findField}
        type="search"
        aria-label="Find in the trace"
        placeholder="Find in names and contents"
        value={view.find}
        onInput={(event) => onView({ ...view, find: event.currentTarget.value })}
        onKeyDown={onKeyDown}
      />
      <span
        className={style["count"]}
        role="status"
        title={trace.hasFailed ? "The contents could not be searched" : "Enter goes to the next, shift enter to the one before"}
      >
        {countOf(trace)}
      </span>
      <Button
        look="quiet"
        aria-pressed={trace.isFiltered}
        onClick={trace.toggleFilter}
        title={withKeys("Show only matches and what is above them; without a search only errors", "f")}
      >
        Only {found === null ? "errors" : "matches"}
      </Button>
    </div>
  );
}
