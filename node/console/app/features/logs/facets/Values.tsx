// A facet's values with their counts. A click filters by one, with alt it is excluded.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type MouseEvent } from "react";
import { condition, ranked, stateOf, toggled, type Chip, type Condition, type Scalar } from "../../../btql";
import { IconButton } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Skeleton } from "../../../design/Skeleton";
import { exactCount, shortCount } from "../../../lib/numbers";
import { rowWord, type Scope } from "../filter/scope";
import { valuesQuery } from "../filter/values";
import { totalsQuery } from "../histogram/queries";
import style from "./Facets.module.css";
import { Failure } from "./Failure";
import type { Facet } from "./sections";

export interface FacetBodyProps {
  readonly scope: Scope;
  readonly chips: readonly Chip[];
  readonly facet: Facet;
  readonly set: (chips: readonly Chip[]) => void;
}

interface RowProps {
  readonly title: string;
  readonly count: number;
  readonly most: number;
  readonly state: "with" | "without" | "none";
  readonly scope: Scope;
  readonly onClick: (isExcluded: boolean) => void;
}

export function ValueRow({ title, count, most, state, scope, onClick }: RowProps) {
  const press = (event: MouseEvent): void => onClick(event.altKey);
  return (
    <li className={classes(style["value"], state !== "none" && style[state])}>
      <span className={style["share"]} style={{ width: `${(100 * count) / Math.max(1, most)}%` }} aria-hidden="true" />
      <button
        type="button"
        className={style["pick"]}
        aria-pressed={state === "with"}
        aria-label={`${title}, ${exactCount(count)} ${rowWord(scope.shape, count)}`}
        title={`${title}\n${exactCount(count)} ${rowWord(scope.shape, count)}. A click with alt excludes it.`}
        onClick={press}
      >
        <span className={style["title"]}>{title}</span>{" "}
        <span className={style["count"]}>{shortCount(count)}</span>
      </button>
      <span className={style["exclude"]}>
        <IconButton
          icon="ban"
          label={state === "without" ? `Stop excluding ${title}` : `Exclude ${title}`}
          onClick={() => onClick(true)}
        />
      </span>
    </li>
  );
}

const SHOWN = 8;
const PAUSE_MS = 150;

const conditionOf = ({ field }: Facet, value: Scalar): Condition =>
  condition(field.path, field.type === "array" ? "includes" : "eq", value);

/** A text, a moment after it came to rest. */
function useRested(text: string): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(text), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return rested;
}

function Search({ facet, value, onValue }: { readonly facet: Facet; readonly value: string; readonly onValue: (value: string) => void }) {
  return (
    <input
      type="search"
      className={style["search"]}
      aria-label={`Find a value of ${facet.name}`}
      placeholder="Find a value"
      autoComplete="off"
      value={value}
      onInput={(event) => onValue(event.currentTarget.value)}
    />
  );
}

export function Values({ scope, chips, facet, set }: FacetBodyProps) {
  const [sought, setSought] = useState("");
  const [isWhole, setWhole] = useState(false);
  const all = useQuery(valuesQuery(scope, facet.field));
  const rested = useRested(sought.trim());
  const isAsked = rested !== "" && all.data?.hasMore === true;
  const some = useQuery({ ...valuesQuery(scope, facet.field, rested), enabled: isAsked });
  const read = isAsked && some.data !== undefined ? some : all;
  if (read.error !== null && !read.isFetching) return <Failure error={read.error} onRetry={() => void read.refetch()} />;
  if (read.data === undefined) return <Skeleton lines={[[12], [9], [7]]} />;
  const found = ranked(read.data.values, sought.trim(), ({ value }) => String(value));
  const shown = isWhole || sought !== "" ? found : found.slice(0, SHOWN);
  const most = read.data.values[0]?.count ?? 1;
  const isLong = (all.data?.values.length ?? 0) > SHOWN;
  return (
    <div className={classes(read.isPlaceholderData && style["old"])} aria-busy={read.isPlaceholderData}>
      {isLong && <Search facet={facet} value={sought} onValue={setSought} />}
      {shown.length === 0 && <p className={style["none"]}>{sought === "" ? "No values" : "No such value"}</p>}
      <ul role="list" aria-label={`Values of ${facet.name}`}>
        {shown.map(({ value, count }) => {
          const found = conditionOf(facet, value);
          return (
            <ValueRow
              key={JSON.stringify(value)}
              title={value === "" ? '""' : String(value)}
              count={count}
              most={most}
              state={stateOf(chips, found, scope.shape)}
              scope={scope}
              onClick={(isExcluded) => set(toggled(chips, found, isExcluded, scope.shape))}
            />
          );
        })}
      </ul>
      {shown.length < found.length && (
        <button type="button" className={style["more"]} onClick={() => setWhole(true)}>
          Show {found.length}
        </button>
      )}
      {isWhole && read.data.hasMore && <p className={style["none"]}>The {found.length} most frequent values</p>}
    </div>
  );
}

/** Whether there are errors: rows with one and those without any. */
export function ErrorValues({ scope, chips, set }: FacetBodyProps) {
  const totals = useQuery(totalsQuery(scope));
  if (totals.error !== null && !totals.isFetching) {
    return <Failure error={totals.error} onRetry={() => void totals.refetch()} />;
  }
  if (totals.data === undefined) return <Skeleton lines={[[12], [9]]} />;
  const { count, errors } = totals.data;
  const found = condition(["error"], "isnotnull");
  const state = stateOf(chips, found, scope.shape);
  const rows = [
    { title: "With errors", count: errors, isExcluded: false, state: state === "with" ? "with" : "none" },
    { title: "Without errors", count: count - errors, isExcluded: true, state: state === "without" ? "with" : "none" },
  ] as const;
  return (
    <ul role="list" aria-label="Errors" className={classes(totals.isPlaceholderData && style["old"])}>
      {rows.map((row) => (
        <ValueRow
          key={row.title}
          title={row.title}
          count={row.count}
          most={Math.max(errors, count - errors)}
          state={row.state}
          scope={scope}
          onClick={(isExcluded) => set(toggled(chips, found, row.isExcluded !== isExcluded, scope.shape))}
        />
      ))}
    </ul>
  );
}
