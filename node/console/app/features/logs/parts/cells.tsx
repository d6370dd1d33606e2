// The cells of the list of logs.
import type { ReactNode } from "react";
import type { LogRow, NamedScore } from "../../../api/rows";
import { classes } from "../../../design/classes";
import type { GridColumn } from "../../../design/GridTypes";
import { duration, exactCount, money, NOTHING, score, shortCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { BUILT_IN, columnOf, directionOf, isBuiltIn, type BuiltInId, type ColumnSpec } from "../columns";
import { arrivedAt, blockOf, errorLine, inputLine, lineOf, outputLine } from "../values";
import style from "./cells.module.css";

/** When a row was made. It follows the clock and the zone by itself. */
export function When({ at }: { readonly at: string | null }) {
  const moment = parseMoment(at);
  return <span title={fullMoment(moment)}>{shortMoment(moment, now.value, preferences.value.zone)}</span>;
}

function Name({ row }: { readonly row: LogRow }) {
  return (
    <>
      {row.isRunning && <span className={style["running"]} role="img" aria-label="Running" title="Running" />}
      {row.name ?? <span className={style["faint"]}>{row.id === "" ? "root not received" : "unnamed"}</span>}
    </>
  );
}

function Scores({ scores }: { readonly scores: readonly NamedScore[] }) {
  if (scores.length === 0) return <span className={style["faint"]}>{NOTHING}</span>;
  return scores.map(({ name, value }) => (
    <span key={name} className={style["score"]}>
      <span className={style["scoreName"]}>{name}</span> {score(value)}
    </span>
  ));
}

function Tags({ tags }: { readonly tags: readonly string[] }) {
  if (tags.length === 0) return <span className={style["faint"]}>{NOTHING}</span>;
  return tags.map((tag) => (
    <span key={tag} className={style["tag"]}>
      {tag}
    </span>
  ));
}

/** A line of text that stands back if there is nothing. */
export function Line({ text }: { readonly text: string }) {
  return text === NOTHING ? <span className={style["faint"]}>{NOTHING}</span> : text;
}

function Output({ row }: { readonly row: LogRow }) {
  const hasOutput = row.output !== null || row.outputText !== null;
  if (row.error !== null) return <span className={style["bad"]}>{errorLine(row.error)}</span>;
  if (!row.isFailed) return <Line text={outputLine(row)} />;
  return (
    <>
      <span className={classes(style["bad"], style["flag"])} title={errorLine(null)}>
        error
      </span>
      {hasOutput && outputLine(row)}
    </>
  );
}

function cellOf(id: BuiltInId, row: LogRow): ReactNode {
  switch (id) {
    case "time":
      return <When at={row.created} />;
    case "arrived":
      return <When at={arrivedAt(row)} />;
    case "name":
      return <Name row={row} />;
    case "input":
      return <Line text={inputLine(row)} />;
    case "output":
      return <Output row={row} />;
    case "expected":
      return <Line text={lineOf(row.expected)} />;
    case "scores":
      return <Scores scores={row.scores} />;
    case "tokens":
      return <span title={exactCount(row.tokens)}>{shortCount(row.tokens)}</span>;
    case "cost":
      return <span title={row.cost === null ? "" : `$${row.cost}`}>{money(row.cost)}</span>;
    case "duration":
      return <span title={row.duration === null ? "" : `${exactCount(row.duration)} ms`}>{duration(row.duration)}</span>;
    case "tags":
      return <Tags tags={row.tags} />;
    case "type":
      return <Line text={row.type ?? NOTHING} />;
    case "model":
      return <Line text={row.model ?? NOTHING} />;
    case "error":
      return row.isFailed ? <span className={style["bad"]}>{errorLine(row.error)}</span> : <Line text={NOTHING} />;
    case "metadata":
      return <Line text={lineOf(row.metadata)} />;
    case "id":
      return <span className={style["mono"]}>{row.id}</span>;
  }
}

const Block = ({ value }: { readonly value: unknown }) => <pre className={style["block"]}>{blockOf(value)}</pre>;

function previewOf(id: BuiltInId, row: LogRow): ReactNode {
  switch (id) {
    case "input":
      return row.input === null ? null : <Block value={row.inputText ?? row.input} />;
    case "output": {
      if (row.error !== null) return <Block value={row.error} />;
      return row.output === null ? null : <Block value={row.outputText ?? row.output} />;
    }
    case "expected":
      return row.expected === null ? null : <Block value={row.expected} />;
    case "error":
      return row.error === null ? null : <Block value={row.error} />;
    case "metadata":
      return row.metadata === null ? null : <Block value={row.metadata} />;
    case "scores":
      return row.scores.length < 2 ? null : <ScoreList scores={row.scores} />;
    case "tags":
      return row.tags.length < 2 ? null : row.tags.join(", ");
    default:
      return null;
  }
}

function ScoreList({ scores }: { readonly scores: readonly NamedScore[] }) {
  return (
    <dl className={style["scores"]}>
      {scores.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{score(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A column of an expression: numbers as they are, the rest in one line. */
function customColumn(spec: ColumnSpec, index: number, sort: string): GridColumn<LogRow> {
  return {
    id: spec.id,
    title: spec.id,
    width: spec.width || columnOf(spec.id).width,
    sort: directionOf(sort, spec.id),
    cell: (row) => <Line text={lineOf(row.custom[index])} />,
    preview: (row) => {
      const value = row.custom[index];
      return value === null || value === undefined ? null : <Block value={value} />;
    },
  };
}

function builtInColumn(id: BuiltInId, width: number, sort: string): GridColumn<LogRow> {
  const known = columnOf(id);
  const grows = width === 0 && (id === "input" || id === "output");
  return {
    id,
    title: known.title,
    width: width || BUILT_IN[id].width,
    ...(grows ? { grow: 1 } : {}),
    ...(known.isNumber ? { align: "end" } : {}),
    ...(known.sortBy === undefined ? {} : { sort: directionOf(sort, id) }),
    cell: (row) => cellOf(id, row),
    preview: (row) => previewOf(id, row),
  };
}

/** The columns of the grid. */
export function gridColumns(specs: readonly ColumnSpec[], sort: string): readonly GridColumn<LogRow>[] {
  let customs = 0;
  return specs.map((spec) => {
    if (isBuiltIn(spec.id)) return builtInColumn(spec.id, spec.width, sort);
    customs += 1;
    return customColumn(spec, customs - 1, sort);
  });
}
