// Two versions of a dataset compared: added, removed and changed rows, with what changed in them.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { diffOf, type DiffPart } from "../../../design/DiffWords";
import { Empty } from "../../../design/Empty";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { exactCount } from "../../../lib/numbers";
import { blockOf, lineOf } from "../cells";
import { CHANGES, fieldDifferences, type Change, type ChangedRow, type Comparison, type FieldDifference } from "../comparing";
import type { Desk } from "../useDesk";
import { comparisonQuery, sidesQuery, type Sides } from "../versions";
import style from "./Compare.module.css";

const STEP = 50;
const MOST = 4000;
const WORDS: Readonly<Record<Change, string>> = { added: "Added", removed: "Removed", changed: "Changed" };
const SIGNS: Readonly<Record<Change, string>> = { added: "+", removed: "−", changed: "~" };

const shortened = (text: string): string => (text.length > MOST ? `${text.slice(0, MOST)}…` : text);

/** Longer texts are shown without what differs within them. */
const MOST_COMPARED = 20_000;

/** The words that differ between two texts; null for other values. */
function wordsOf(before: unknown, after: unknown): readonly DiffPart[] | null {
  if (typeof before !== "string" || typeof after !== "string") return null;
  return before.length + after.length > MOST_COMPARED ? null : diffOf(before, after);
}

function Words({ parts, side }: { readonly parts: readonly DiffPart[]; readonly side: "before" | "after" }) {
  const own = side === "before" ? "removed" : "added";
  return parts.map((part, index) => {
    if (part.kind === own) return <mark key={index}>{part.text}</mark>;
    return part.kind === "added" || part.kind === "removed" ? null : <span key={index}>{part.text}</span>;
  });
}

interface PairProps {
  readonly before: unknown;
  readonly after: unknown;
}

function Pair({ before, after }: PairProps) {
  const words = useMemo(() => wordsOf(before, after), [before, after]);
  return (
    <>
      <Side side="before" value={before} words={words} />
      <Side side="after" value={after} words={words} />
    </>
  );
}

interface SideProps {
  readonly value: unknown;
  readonly side: "before" | "after";
  readonly words: readonly DiffPart[] | null;
}

/** A value of one side; nothing if the side has none. */
function Side({ value, side, words }: SideProps) {
  if (value === undefined) return <div className={style["none"]} />;
  return (
    <pre className={style[side]}>
      <span className="only-spoken">{side === "before" ? "Before: " : "After: "}</span>
      {words === null ? shortened(blockOf(value)) : <Words parts={words} side={side} />}
    </pre>
  );
}

function Field({ difference }: { readonly difference: FieldDifference }) {
  const { field, before, after, paths } = difference;
  if (paths.length === 0) {
    return (
      <div className={style["field"]}>
        <h4>{field}</h4>
        <Pair before={before} after={after} />
      </div>
    );
  }
  return paths.map((one) => (
    <div key={one.path} className={style["field"]}>
      <h4>
        {field}
        <code>{one.path}</code>
      </h4>
      <Pair before={one.before} after={one.after} />
    </div>
  ));
}

function Row({ row, sides }: { readonly row: ChangedRow; readonly sides: Sides | undefined }) {
  const [before, after] = [sides?.before.get(row.id), sides?.after.get(row.id)];
  const differences = useMemo(() => fieldDifferences(before, after), [before, after]);
  const isThere = before !== undefined || after !== undefined;
  return (
    <li className={style["row"]} aria-label={`${WORDS[row.change]}: ${row.id}`}>
      <h3 className={style["rowHead"]}>
        <span className={classes(style["sign"], style[row.change])}>
          {SIGNS[row.change]} {WORDS[row.change]}
        </span>
        <code>{row.id}</code>
        <span className={style["line"]}>{isThere && lineOf(after?.input ?? before?.input)}</span>
      </h3>
      {differences.map((difference) => (
        <Field key={difference.field} difference={difference} />
      ))}
      {isThere && differences.length === 0 && <p className={style["faint"]}>Written again with the same values.</p>}
    </li>
  );
}

interface ChangesProps {
  readonly found: Comparison;
  readonly shown: Change | "all";
  readonly onShow: (change: Change | "all") => void;
}

function Filters({ found, shown, onShow }: ChangesProps) {
  return (
    <div className={style["filters"]} role="group" aria-label="Which rows are shown">
      <Button aria-pressed={shown === "all"} look={shown === "all" ? "primary" : "plain"} onClick={() => onShow("all")}>
        All {exactCount(found.rows.length)}
      </Button>
      {CHANGES.map((change) => (
        <Button
          key={change}
          aria-pressed={shown === change}
          look={shown === change ? "primary" : "plain"}
          onClick={() => onShow(change)}
        >
          {WORDS[change]} {exactCount(found.counts[change])}
        </Button>
      ))}
      <span className={style["faint"]}>{exactCount(found.same)} the same</span>
    </div>
  );
}

function Found({ desk, found }: { readonly desk: Desk; readonly found: Comparison }) {
  const { state, place } = desk;
  const [shown, setShown] = useState<Change | "all">("all");
  const [count, setCount] = useState(STEP);
  const rows = found.rows.filter((row) => shown === "all" || row.change === shown);
  const visible = rows.slice(0, count);
  const ids = visible.map((row) => row.id);
  const sides = useQuery(sidesQuery(place, state.compare, state.version, ids)).data;
  if (found.rows.length === 0) {
    return <Empty>The two versions are the same: {exactCount(found.same)} rows.</Empty>;
  }
  return (
    <div className={style["compare"]}>
      <Filters
        found={found}
        shown={shown}
        onShow={(change) => {
          setShown(change);
          setCount(STEP);
        }}
      />
      <ul className={style["rows"]} aria-label="Differences">
        {visible.map((row) => (
          <Row key={row.id} row={row} sides={sides} />
        ))}
      </ul>
      {rows.length > count && (
        <p className={style["more"]}>
          <Button onClick={() => setCount(count + STEP)}>Show {exactCount(Math.min(STEP, rows.length - count))} more</Button>
        </p>
      )}
    </div>
  );
}

export function Compare({ desk }: { readonly desk: Desk }) {
  const { state, place } = desk;
  const query = useQuery(comparisonQuery(place, state.compare, state.version));
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<Skeleton lines={[[20], [60, 60], [60, 60]]} />}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {(found) => <Found key={`${state.compare} ${state.version}`} desk={desk} found={found} />}
    </Loaded>
  );
}
