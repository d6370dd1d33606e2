// One line of the tree: a span, or many equal ones, with what it is, how it begins, and how long it took.
import { classes } from "../../../design/classes";
import { duration } from "../../../lib/numbers";
import type { Line } from "../tree/lines";
import { NONE, type TraceTree } from "../tree/model";
import { SpanIcon } from "./SpanIcon";
import style from "./Tree.module.css";

/** Depth from which lines are not indented further; a number says the depth then. */
const INDENT_MAX = 16;
const INDENT_PX = 14;
/** Lines below this depth are indented less, so that names keep room. */
const WIDE_MAX = 6;
const NARROW_PX = 7;

export const indentOf = (depth: number): number =>
  Math.min(depth, WIDE_MAX) * INDENT_PX + Math.max(Math.min(depth, INDENT_MAX) - WIDE_MAX, 0) * NARROW_PX;

export interface TreeLineProps {
  readonly id: string;
  readonly tree: TraceTree;
  readonly line: Line;
  readonly index: number;
  readonly top: number;
  readonly height: number;
  readonly preview: string;
  readonly isSelected: boolean;
  readonly isFound: boolean;
  readonly select: (span: number) => void;
  readonly fold: (line: Line, isFolded: boolean) => void;
}

const lengthOf = (line: Line): string =>
  line.others.length === 0
    ? duration(line.longest * 1000)
    : `${duration(line.shortest * 1000)}–${duration(line.longest * 1000)}`;

/** What a screen reader is told of a line's time. */
function timeOf(tree: TraceTree, line: Line): string {
  const whole = tree.last - tree.first;
  const after = duration((line.begin - tree.first) * 1000);
  const share = whole > 0 ? `, ${Math.round(((line.end - line.begin) / whole) * 100)} % of the trace` : "";
  return `${tree.isOpen[line.span] === 1 ? "running, " : ""}starts after ${after}${share}`;
}

type MarkProps = Pick<TreeLineProps, "line" | "fold"> & { readonly name: string; readonly isOpen: boolean };

function Twisty({ line, fold, name, isOpen }: MarkProps) {
  if (!line.hasBelow) return <span className={style["twisty"]} />;
  return (
    <button
      type="button"
      tabIndex={-1}
      className={classes(style["twisty"], isOpen && style["open"])}
      aria-label={isOpen ? `Fold ${name}` : `Unfold ${name}`}
      onClick={(event) => {
        event.stopPropagation();
        fold(line, isOpen);
      }}
    />
  );
}

/** The notes that stand after a name. */
function Notes({ tree, line }: { readonly tree: TraceTree; readonly line: Line }) {
  const span = tree.spans[line.span];
  const isAlone = line.others.length === 0;
  return (
    <>
      {line.hasError && <span className={style["error"]}>error</span>}
      {isAlone && tree.isOpen[line.span] === 1 && <span className={style["note"]}>running</span>}
      {tree.orphans.has(line.span) && (
        <span className={style["note"]} title={`The span ${span?.parents[0] ?? ""} has not arrived, or it was deleted`}>
          parent not received
        </span>
      )}
      {isAlone && span !== undefined && span.model !== "" && span.type === "llm" && (
        <span className={style["model"]}>{span.model}</span>
      )}
    </>
  );
}

export function TreeLine(props: TreeLineProps) {
  const { id, tree, line, index, top, height, preview, isSelected, isFound, select, fold } = props;
  const span = tree.spans[line.span];
  if (span === undefined) return null;
  const isOpen = line.hasBelow && !line.isFolded;
  const name = span.name === "" ? span.spanId : span.name;
  const isTop = tree.parent[line.span] === NONE;
  return (
    <div
      role="row"
      id={id}
      className={classes(style["line"], isSelected && style["selected"], isFound && style["found"])}
      style={{ top: `${top}px`, height: `${height}px` }}
      aria-level={line.depth + 1}
      aria-rowindex={index + 1}
      aria-posinset={tree.sibling[line.span]}
      aria-setsize={tree.siblings[line.span]}
      aria-selected={isSelected}
      aria-expanded={line.hasBelow ? isOpen : undefined}
      tabIndex={isSelected ? 0 : -1}
      onClick={() => select(line.span)}
      onDoubleClick={() => line.hasBelow && fold(line, isOpen)}
    >
      <span role="gridcell" className={style["name"]} style={{ paddingInlineStart: `${indentOf(line.depth)}px` }}>
        <Twisty line={line} fold={fold} name={name} isOpen={isOpen} />
        {line.depth > INDENT_MAX && (
          <span className={style["depth"]} title={`${line.depth} levels below the root`}>
            {line.depth}
          </span>
        )}
        <SpanIcon type={span.type} />
        <span className={classes(style["title"], isTop && style["top"])} title={name}>
          {name}
          {line.others.length > 0 && ` × ${(line.others.length + 1).toLocaleString("en-US")}`}
        </span>
        <Notes tree={tree} line={line} />
        {preview !== "" && <span className={classes(style["preview"], span.hasError && style["bad"])}>{preview}</span>}
      </span>
      <span role="gridcell" className={style["length"]} title={`${lengthOf(line)}, ${timeOf(tree, line)}`}>
        {lengthOf(line)}
      </span>
      <span role="gridcell" className={style["time"]}>
        <span className="only-spoken">{timeOf(tree, line)}</span>
      </span>
    </div>
  );
}
