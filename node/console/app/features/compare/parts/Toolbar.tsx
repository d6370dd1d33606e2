// How the rows are filtered, ordered and laid out, and what can be taken away from them.
import type { ReactNode } from "react";
import { IconButton } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { Menu } from "../../../design/Menu";
import { LAYOUTS, SORTS, type CompareState, type Layout, type Sort } from "../url";
import { GroupButton } from "./GroupButton";
import style from "./Toolbar.module.css";

const LAYOUT_TITLES: Readonly<Record<Layout, string>> = { table: "Table", grid: "Grid", summary: "Summary" };

const SORT_TITLES: Readonly<Record<Sort, string>> = {
  worst: "Regressions first",
  best: "Improvements first",
  low: "Lowest first",
  high: "Highest first",
  key: "By key",
};

interface ToolbarProps {
  readonly state: CompareState;
  readonly change: (part: Partial<CompareState>) => void;
  readonly filter: ReactNode;
  readonly hasBase: boolean;
  /** Paths that rows can be grouped by. */
  readonly paths: readonly string[];
  /** The title of the score that the order is about. */
  readonly score: string;
  readonly onCopy: () => void;
  readonly onExport: (format: "csv" | "jsonl" | "parquet") => void;
  readonly onVersion: () => void;
  /** The expression that pairs rows; empty while it is not known. */
  readonly pairedBy: string;
  readonly onKey: () => void;
}

function Layouts({ state, change }: Pick<ToolbarProps, "state" | "change">) {
  return (
    <div className={style["segments"]} role="group" aria-label="Layout">
      {LAYOUTS.map((layout) => (
        <button
          key={layout}
          type="button"
          aria-pressed={layout === state.layout}
          className={classes(style["segment"], layout === state.layout && style["on"])}
          onClick={() => change({ layout })}
        >
          {LAYOUT_TITLES[layout]}
        </button>
      ))}
    </div>
  );
}

export function Toolbar(props: ToolbarProps) {
  const { state, change, filter, hasBase, paths, score, onCopy, onExport, onVersion, pairedBy, onKey } = props;
  const sorts = SORTS.filter((sort) => hasBase || (sort !== "worst" && sort !== "best"));
  const sort = hasBase || (state.sort !== "worst" && state.sort !== "best") ? state.sort : "low";
  return (
    <div className={style["toolbar"]} role="toolbar" aria-label="Comparison">
      <div className={style["filterBox"]}>{filter}</div>
      <Menu
        label={`Order: ${SORT_TITLES[sort]}${score === "" || sort === "key" ? "" : ` by ${score}`}`}
        button={
          <>
            {SORT_TITLES[sort]} <Icon name="down" />
          </>
        }
        items={sorts.map((one) => ({
          id: one,
          title: SORT_TITLES[one],
          isChosen: one === sort,
          run: () => change({ sort: one }),
        }))}
      />
      <GroupButton group={state.group} paths={paths} onGroup={(group) => change({ group })} />
      {hasBase && (
        <button
          type="button"
          className={classes(style["tool"], state.isDiff && style["on"])}
          aria-pressed={state.isDiff}
          title={withKeys("Show how outputs differ from the base", "d")}
          onClick={() => change({ isDiff: !state.isDiff })}
        >
          Diff
        </button>
      )}
      <Layouts state={state} change={change} />
      <IconButton icon="copy" label="Copy as a Markdown table" hint={withKeys("Copy as a Markdown table", "Y")} onClick={onCopy} />
      <Menu
        label="Export, time and pairing"
        isAlone
        button={<Icon name="more" />}
        items={[
          { id: "csv", heading: "Export the rows of all experiments", title: "CSV", run: () => onExport("csv") },
          { id: "jsonl", title: "JSON lines", run: () => onExport("jsonl") },
          { id: "parquet", title: "Parquet", run: () => onExport("parquet") },
          { id: "version", heading: "Time", title: "Show an earlier state", run: onVersion },
          ...(state.version === ""
            ? [{ id: "key", heading: `Rows are paired by ${pairedBy}`, title: "Change what pairs rows", run: onKey }]
            : []),
        ]}
      />
    </div>
  );
}
