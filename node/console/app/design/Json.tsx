// A JSON value as a tree: folded where it is large, found in, and copied by path. Only rows in view are drawn.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { copyText } from "../lib/clipboard";
import { asText, parseJson } from "../lib/json";
import { announce } from "../lib/store";
import { IconButton } from "./Button";
import { classes } from "./classes";
import style from "./Json.module.css";
import { JsonFind } from "./JsonFind";
import { JsonLine, ROW_PX } from "./JsonLine";
import { Marked } from "./Marked";
import {
  firstOpen,
  idOf,
  isInText,
  isMany,
  pathText,
  rowsOf,
  valueAt,
  type Embedded,
  type JsonRow,
  type Opened,
  type Step,
} from "./JsonRows";
import { openedTo } from "./JsonSearch";

const MORE = 12;
const ROWS_DEFAULT = 28;
/** The width of a letter, and the room at the right, in pixels. */
const LETTER_PX = 7.3;
const ROOM_PX = 40;

interface JsonProps {
  readonly value: unknown;
  /** The value in JSON, which is read instead of the value, with every digit of its numbers. */
  readonly text?: string;
  /** What the value is, for screen readers and as the first step of its paths. */
  readonly label: string;
  /** How many rows are shown at most before the value scrolls; a value with a limit has no bar above it. */
  readonly rows?: number;
  /** Filters by a value at a path, or excludes it. */
  readonly onFilter?: ((path: readonly Step[], value: unknown, isExcluded: boolean) => void) | undefined;
}

/** How many letters fit into the width of an element, which is measured in steps so that little changes. */
function useColumns(element: { readonly current: HTMLElement | null }): number {
  const [columns, setColumns] = useState(80);
  useLayoutEffect(() => {
    const box = element.current;
    if (box === null) return undefined;
    const measure = (): void => setColumns(Math.max(Math.floor((box.clientWidth - ROOM_PX) / LETTER_PX / 4) * 4, 20));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return columns;
}

/** What is open, which row is the current one, and the rows that follow. */
function useRows(value: unknown, columns: number) {
  const first = useMemo(() => firstOpen(value), [value]);
  const [opened, setOpened] = useState<Opened>(new Map());
  const [embedded, setEmbedded] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState("");
  useEffect(() => {
    setOpened(new Map());
    setEmbedded(new Set());
    setCurrent("");
  }, [value]);
  const rows = useMemo(() => rowsOf(value, { opened, first, embedded, columns }), [value, opened, first, embedded, columns]);
  const at = Math.max(rows.findIndex((row) => row.id === current), 0);
  const fold = (row: JsonRow, isOpen: boolean): void => setOpened(new Map([...opened, [row.id, isOpen]]));
  const embed = (row: JsonRow): void => {
    const id = idOf(row.path);
    const next = new Set(embedded);
    if (!next.delete(id)) next.add(id);
    setEmbedded(next);
    setOpened(new Map([...opened, [id, true]]));
    setCurrent(id);
  };
  const show = (path: readonly Step[]): void => {
    const isText = typeof valueAt(value, path) === "string";
    setOpened(openedTo(opened, isText ? [...path, 0] : path));
    setCurrent(idOf(path));
  };
  return { rows, at, embedded, fold, embed, show, setCurrent };
}

type Rows = ReturnType<typeof useRows>;

async function copied(text: string, what: string): Promise<void> {
  announce((await copyText(text)) ? `${what} copied.` : "Copying failed.");
}

/** What keys do in the tree. Returns whether the key was one of its own. */
function pressed(key: string, { rows, at, fold, embed, setCurrent }: Rows, page: number): boolean {
  const row = rows[at];
  const go = (to: number): true => {
    const target = rows[Math.min(Math.max(to, 0), rows.length - 1)];
    if (target !== undefined) setCurrent(target.id);
    return true;
  };
  switch (key) {
    case "ArrowDown":
      return go(at + 1);
    case "ArrowUp":
      return go(at - 1);
    case "PageDown":
      return go(at + page);
    case "PageUp":
      return go(at - page);
    case "Home":
      return go(0);
    case "End":
      return go(rows.length - 1);
    case "ArrowRight":
      if (row?.isOpen === false) fold(row, true);
      else if (row?.isOpen === true) go(at + 1);
      return true;
    case "ArrowLeft":
      if (row?.isOpen === true) fold(row, false);
      else if (row !== undefined) go(rows.findLastIndex((other, place) => place < at && other.depth < row.depth));
      return true;
    case "Enter":
    case " ":
      if (row !== undefined && row.isOpen !== null) fold(row, !row.isOpen);
      return true;
    case "p":
      if (row?.isEmbedded === true) embed(row);
      return row?.isEmbedded === true;
    default:
      return false;
  }
}

/** The first row that is drawn, and how many. */
function useWindow(element: { readonly current: HTMLDivElement | null }, at: number, count: number, height: number) {
  const [top, setTop] = useState(0);
  const wasAt = useRef(at);
  useLayoutEffect(() => {
    const box = element.current;
    const isMoved = wasAt.current !== at;
    wasAt.current = at;
    if (box === null || !isMoved) return;
    if (at * ROW_PX < box.scrollTop) box.scrollTop = at * ROW_PX;
    else if ((at + 1) * ROW_PX > box.scrollTop + height) box.scrollTop = (at + 1) * ROW_PX - height;
  }, [at, height]);
  const first = Math.max(Math.min(Math.floor(top / ROW_PX), count) - MORE, 0);
  return { first, last: Math.min(first + Math.ceil(height / ROW_PX) + 2 * MORE, count), setTop };
}

interface BarProps {
  readonly value: unknown;
  readonly embedded: Embedded;
  readonly label: string;
  readonly path: readonly Step[];
  readonly show: (path: readonly Step[]) => void;
}

function Bar({ value, embedded, label, path, show }: BarProps) {
  const [isFinding, setFinding] = useState(false);
  const text = pathText(path);
  return (
    <div className={style["bar"]}>
      <code className={style["path"]} title={text}>
        <Marked text={text === "" ? label.toLowerCase() : text} />
      </code>
      <JsonFind value={value} embedded={embedded} label={label} isOpen={isFinding} onOpen={setFinding} show={show} />
      <IconButton icon="code" label={`Copy the path in ${label}`} onClick={() => void copied(text, "Path")} />
      <IconButton icon="copy" label={`Copy the value in ${label}`} onClick={() => void copied(asText(valueAt(value, path)), "Value")} />
    </div>
  );
}

/** The value that is shown: what a text says, if it is given and is JSON. */
function useShown(value: unknown, text: string | undefined): unknown {
  return useMemo(() => {
    if (text === undefined) return value;
    try {
      return parseJson(text);
    } catch {
      return text;
    }
  }, [value, text]);
}

export function Json({ value: given, text, label, rows: limit, onFilter }: JsonProps) {
  const value = useShown(given, text);
  const element = useRef<HTMLDivElement>(null);
  const prefix = useId();
  const columns = useColumns(element);
  const state = useRows(value, columns);
  const { rows, at, embedded, fold, embed, setCurrent, show } = state;
  const height = Math.min(rows.length, limit ?? ROWS_DEFAULT) * ROW_PX;
  const { first, last, setTop } = useWindow(element, at, rows.length, height);
  const onKeyDown = (event: KeyboardEvent): void => {
    const isHeld = event.ctrlKey || event.metaKey;
    if (isHeld && event.key === "c" && window.getSelection()?.isCollapsed !== false) {
      event.preventDefault();
      void copied(asText(valueAt(value, rows[at]?.path ?? [])), "Value");
    }
    if (isHeld || event.altKey || !pressed(event.key, state, Math.max(Math.floor(height / ROW_PX) - 1, 1))) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const current = rows[at];
  const filterOf = (row: JsonRow) => {
    const own = row.tone === "many" ? undefined : valueAt(value, row.path);
    if (onFilter === undefined || own === undefined || isMany(own) || isInText(value, row.path)) return undefined;
    return (isExcluded: boolean): void => onFilter(row.path, own, isExcluded);
  };
  return (
    <div className={classes(style["json"], limit !== undefined && style["small"])}>
      {limit === undefined && rows.length > 1 && <Bar value={value} embedded={embedded} label={label} path={current?.path ?? []} show={show} />}
      <div
        ref={element}
        role="tree"
        aria-label={label}
        tabIndex={0}
        className={style["rows"]}
        style={{ height: `${height + 2}px` }}
        aria-activedescendant={at >= first && at < last ? `${prefix}-${at}` : undefined}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div className={style["room"]} style={{ height: `${rows.length * ROW_PX}px` }} role="presentation">
          {rows.slice(first, last).map((row, index) => (
            <JsonLine
              key={row.id}
              row={row}
              id={`${prefix}-${first + index}`}
              top={(first + index) * ROW_PX}
              isCurrent={first + index === at}
              onPick={() => setCurrent(row.id)}
              onFold={() => row.isOpen !== null && fold(row, !row.isOpen)}
              onEmbed={() => embed(row)}
              onFilter={filterOf(row)}
            />
          ))}
        </div>
      </div>
    </div>
  );
}
