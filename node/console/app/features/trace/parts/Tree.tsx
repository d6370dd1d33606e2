// The tree of a trace with its timeline. Only the lines in view and a few more are in the document.
import { useId, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { useRowHeight } from "../../../design/GridScroll";
import { duration } from "../../../lib/numbers";
import { shareOf, ticksOf, type Window } from "../tree/bars";
import type { Line } from "../tree/lines";
import type { TraceTree } from "../tree/model";
import { usePreviews } from "../usePreviews";
import { windowOf, type OpenTrace } from "../useTrace";
import { Bars } from "./Bars";
import { TreeLine } from "./TreeLine";
import { pressed } from "./treeKeys";
import style from "./Tree.module.css";

/** Lines that are kept above and below those in view, and the most that are ever drawn. */
const MORE = 10;
const ROWS_MAX = 120;
const TICKS = 4;
/** The share of the width behind which a tick's words would not fit. */
const TICK_LAST = 0.82;

const percent = (share: number): string => `${Math.round(share * 1e4) / 100}%`;

function Ticks({ tree, window }: { readonly tree: TraceTree; readonly window: Window }) {
  const place = (tick: number): number => shareOf(window, tree.first + tick);
  return (
    <div className={style["ticks"]} aria-hidden="true">
      {ticksOf(window, tree.first, TICKS).filter((tick) => place(tick) <= TICK_LAST).map((tick) => (
        <span key={tick} style={{ insetInlineStart: percent(place(tick)) }}>
          {duration(tick * 1000)}
        </span>
      ))}
    </div>
  );
}

const lineAt = (lines: readonly Line[], span: number): number =>
  lines.findIndex((line) => line.span === span || (line.others.length > 0 && line.others.includes(span)));

/** Which lines are drawn. What stands at the top stays there when lines of a running trace come before it. */
function useShown(element: RefObject<HTMLDivElement | null>, tree: TraceTree, lines: readonly Line[], height: number) {
  const [scroll, setScroll] = useState({ top: 0, rows: 30 });
  const anchor = useRef({ tree, span: -1, rest: 0 });
  const note = (top: number): void => {
    const line = lines[Math.floor(top / height)];
    anchor.current = { tree, span: line?.span ?? -1, rest: top % height };
  };
  useLayoutEffect(() => {
    const scroller = element.current;
    if (scroller === null) return undefined;
    const measure = (): void => {
      const rows = Math.min(Math.ceil(scroller.clientHeight / height), ROWS_MAX - 2 * MORE);
      setScroll({ top: scroller.scrollTop, rows });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(scroller);
    return () => observer.disconnect();
  }, [height]);
  useLayoutEffect(() => {
    const { tree: before, span, rest } = anchor.current;
    const scroller = element.current;
    if (before !== tree && span >= 0 && scroller !== null && before.spans[0]?.spanId === tree.spans[0]?.spanId) {
      const at = lineAt(lines, span);
      if (at >= 0 && scroller.scrollTop > 0) scroller.scrollTop = at * height + rest;
    }
    note(scroller?.scrollTop ?? 0);
  }, [tree, lines, height]);
  const onScroll = (top: number): void => {
    note(top);
    setScroll((known) => ({ ...known, top }));
  };
  const first = Math.max(Math.min(Math.floor(scroll.top / height), lines.length - 1) - MORE, 0);
  const shown = useMemo(() => lines.slice(first, first + scroll.rows + 2 * MORE), [lines, first, scroll.rows]);
  return { first, shown, page: Math.max(scroll.rows - 2, 1), onScroll };
}

/** Keeps the selected line in view, and gives it the focus if the tree has it. */
function useInView(element: RefObject<HTMLDivElement | null>, at: number, id: string, height: number): void {
  useLayoutEffect(() => {
    const scroller = element.current;
    if (scroller === null || at < 0) return;
    // The focused line may leave the document before the target is drawn: the tree holds the focus in between.
    const hasFocus = scroller.contains(document.activeElement);
    if (hasFocus && document.getElementById(id) === null) scroller.focus({ preventScroll: true });
    const top = at * height;
    const { scrollTop, clientHeight } = scroller;
    const isFar = top < scrollTop - clientHeight || top > scrollTop + 2 * clientHeight;
    if (isFar) scroller.scrollTop = top - (clientHeight - height) / 2;
    else if (top < scrollTop) scroller.scrollTop = top;
    else if (top + height > scrollTop + clientHeight) scroller.scrollTop = top + height - clientHeight;
  }, [id, height]);
  useLayoutEffect(() => {
    const scroller = element.current;
    if (scroller === null || !scroller.contains(document.activeElement)) return;
    const line = document.getElementById(id);
    if (line !== null && !line.contains(document.activeElement)) line.focus({ preventScroll: true });
  });
}

function Head({ tree, lines, window }: { readonly tree: TraceTree; readonly lines: readonly Line[]; readonly window: Window }) {
  const spans = `${tree.spans.length.toLocaleString("en-US")} ${tree.spans.length === 1 ? "span" : "spans"}`;
  const isPart = lines.length < tree.spans.length;
  return (
    <div className={style["head"]}>
      <span className={style["count"]}>{isPart ? `${lines.length.toLocaleString("en-US")} lines of ${spans}` : spans}</span>
      <Ticks tree={tree} window={window} />
    </div>
  );
}

/** What is said where the filter leaves nothing. */
function NoLines({ trace }: { readonly trace: OpenTrace }) {
  const words = trace.found === null ? "No span of the trace has an error." : "No span matches. Contents are searched by whole words.";
  return <Empty action={<Button onClick={trace.toggleFilter}>Show all spans</Button>}>{trace.isFinding ? "Searching" : words}</Empty>;
}

interface TreeProps {
  readonly trace: OpenTrace;
  readonly tree: TraceTree;
  readonly critical: ReadonlySet<number>;
}

export function Tree({ trace, tree, critical }: TreeProps) {
  const element = useRef<HTMLDivElement>(null);
  const prefix = useId();
  const height = useRowHeight();
  const { lines, selected } = trace;
  const found = useMemo(() => new Set(trace.found ?? []), [trace.found]);
  const { first, shown, page, onScroll } = useShown(element, tree, lines, height);
  const at = useMemo(() => lineAt(lines, selected), [lines, selected]);
  const ids = useMemo(() => shown.map((line) => (line.others.length > 0 ? "" : (tree.spans[line.span]?.id ?? ""))), [shown, tree]);
  const previews = usePreviews(trace.place, ids);
  const idOf = (span: number): string => `${prefix}-${span}`;
  useInView(element, at, idOf(lines[at]?.span ?? -1), height);
  const window = windowOf(trace);
  if (lines.length === 0) return <NoLines trace={trace} />;
  return (
    <div className={style["tree"]}>
      <Head tree={tree} lines={lines} window={window} />
      <div
        ref={element}
        role="treegrid"
        aria-label="Spans of the trace"
        aria-rowcount={lines.length}
        className={style["lines"]}
        tabIndex={at >= first && at < first + shown.length ? -1 : 0}
        onScroll={(event) => onScroll(event.currentTarget.scrollTop)}
        onKeyDown={(event: KeyboardEvent) => {
          if (event.ctrlKey || event.metaKey || event.altKey) return;
          if (pressed(event.key, trace, page)) event.preventDefault();
        }}
      >
        <div className={style["room"]} style={{ height: `${lines.length * height}px` }} role="presentation">
          {shown.map((line, index) => (
            <TreeLine
              key={line.span}
              id={idOf(line.span)}
              tree={tree}
              line={line}
              index={first + index}
              top={(first + index) * height}
              height={height}
              preview={previews.get(ids[index] ?? "") ?? ""}
              isSelected={first + index === at}
              isFound={found.has(line.span) || (line.others.length > 0 && line.others.some((other) => found.has(other)))}
              select={trace.select}
              fold={trace.fold}
            />
          ))}
          <Bars tree={tree} lines={shown} window={window} critical={critical} top={first * height} rowHeight={height} />
        </div>
      </div>
    </div>
  );
}
