// One row of a JSON value: its key, its value or how much is inside, and what can be done with it.
import { classes } from "./classes";
import style from "./Json.module.css";
import { Marked } from "./Marked";
import type { JsonRow } from "./JsonRows";

/** The height of a row in pixels. */
export const ROW_PX = 20;

const INDENT_PX = 14;
/** Deeper rows are not indented further. */
const INDENT_MAX = 24;

interface JsonLineProps {
  readonly row: JsonRow;
  readonly id: string;
  readonly top: number;
  readonly isCurrent: boolean;
  readonly onPick: () => void;
  readonly onFold: () => void;
  readonly onEmbed: () => void;
  /** Filters by the value of the row; absent where that is not possible. */
  readonly onFilter?: ((isExcluded: boolean) => void) | undefined;
}

export function JsonLine({ row, id, top, isCurrent, onPick, onFold, onEmbed, onFilter }: JsonLineProps) {
  const { label, isOpen } = row;
  const isFoldable = isOpen !== null;
  const isLine = row.tone === "text";
  return (
    <div
      id={id}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-posinset={row.at}
      aria-setsize={row.of}
      aria-expanded={isOpen ?? undefined}
      aria-selected={isCurrent}
      className={classes(style["row"], isCurrent && style["current"])}
      style={{ top: `${top}px`, paddingInlineStart: `${4 + Math.min(row.depth, INDENT_MAX) * INDENT_PX}px` }}
      onClick={(event) => {
        onPick();
        if (event.altKey && onFilter !== undefined) {
          event.preventDefault();
          onFilter(event.shiftKey);
          return;
        }
        if (isFoldable && window.getSelection()?.isCollapsed !== false) onFold();
      }}
    >
      {!isLine && <span className={classes(style["mark"], isFoldable && style["foldable"], isOpen === true && style["open"])} aria-hidden="true" />}
      {label !== null && <span className={typeof label === "number" ? style["index"] : style["key"]}><Marked text={String(label)} /></span>}
      {row.text !== "" && (
        <span
          className={classes(style["value"], style[row.tone])}
          title={onFilter === undefined ? undefined : "Alt click filters by the value, alt shift click excludes it"}
        >
          <Marked text={row.text} />
        </span>
      )}
      {row.size !== "" && <span className={style["size"]}>{row.size}</span>}
      {isCurrent && row.isEmbedded && (
        <button
          type="button"
          tabIndex={-1}
          className={style["embed"]}
          title="The text is JSON. Key: p"
          onClick={(event) => {
            event.stopPropagation();
            onEmbed();
          }}
        >
          {row.tone === "many" ? "As text" : "As JSON"}
        </button>
      )}
    </div>
  );
}
