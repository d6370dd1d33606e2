// The pairs as cards with the outputs side by side, in several lines. It draws the cards that are in view.
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import type { Cell, Compared, ComparedExperiment, Pair } from "../../../api/comparison";
import { classes } from "../../../design/classes";
import { Delta } from "../../../design/Delta";
import { diffOf } from "../../../design/DiffWords";
import { scrollFor, windowOf, type Window } from "../../../design/GridLogic";
import type { GridState } from "../../../design/GridTypes";
import { moved } from "../../../lib/store";
import { deltaText, toneOf, valueText } from "../measures";
import { pairIdOf } from "../rows";
import { inColumns, measuresIn } from "../summaries";
import { blockOf, errorLine } from "../values";
import { DiffText } from "./DiffText";
import style from "./GridView.module.css";

interface GridViewProps {
  readonly compared: Compared;
  readonly pairs: readonly Pair[];
  readonly grid: GridState;
  readonly isDiff: boolean;
  readonly onEnd: () => void;
  readonly onOpen: (pair: Pair) => void;
}

/** The height of a card with the gap below it, in rem. */
const CARD_REM = 12;

interface OutputProps {
  readonly cell: Cell | undefined;
  readonly base: Cell | undefined;
}

function Output({ cell, base }: OutputProps) {
  const trial = cell?.trials[0];
  if (trial === undefined) return <p className={style["absent"]}>no row</p>;
  if (trial.error !== null) return <p className={style["error"]}>{errorLine(trial.error)}</p>;
  const text = blockOf(trial.output);
  const before = base?.trials[0];
  if (before === undefined || before.error !== null) return <p className={style["output"]}>{text}</p>;
  return (
    <p className={style["output"]}>
      <DiffText parts={diffOf(blockOf(before.output), text)} />
    </p>
  );
}

interface SideProps {
  readonly pair: Pair;
  readonly experiment: ComparedExperiment;
  readonly compared: Compared;
  readonly isDiff: boolean;
}

function Side({ pair, experiment, compared, isDiff }: SideProps) {
  const cell = pair.cells.find((one) => one.experiment === experiment.id);
  const isBase = experiment.id === compared.base;
  const base = isDiff && !isBase ? pair.cells.find((one) => one.experiment === compared.base) : undefined;
  const scores = measuresIn(compared).filter(({ unit }) => unit === "score");
  return (
    <div className={style["side"]}>
      <p className={style["scores"]}>
        {scores.map((measure) => {
          const delta = cell?.deltas[measure.name];
          const value = cell?.scores[measure.name];
          return value === undefined ? null : (
            <span key={measure.name}>
              <span className={style["faint"]}>{measure.title}</span> {valueText(measure, value)}
              {delta !== undefined && !isBase && Math.abs(delta) > 1e-9 && (
                <>
                  {" "}
                  <Delta value={delta} text={deltaText(measure, delta)} tone={toneOf(measure, delta)} />
                </>
              )}
            </span>
          );
        })}
        {cell !== undefined && cell.trials.length > 1 && <span className={style["faint"]}>{cell.trials.length} trials</span>}
      </p>
      <Output cell={cell} base={base} />
    </div>
  );
}

/** Which cards are in view; the state changes only when others come into view. */
function useWindow(count: number) {
  const element = useRef<HTMLDivElement>(null);
  const [height] = useState(() => CARD_REM * (Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || 16));
  const [shown, setShown] = useState<Window>({ first: 0, end: Math.min(count, 8) });
  const measure = (): void => {
    const list = element.current;
    if (list === null) return;
    const next = windowOf(list.scrollTop, list.clientHeight, height, count);
    setShown((before) => (before.first === next.first && before.end === next.end ? before : next));
  };
  useLayoutEffect(measure, [count]);
  useEffect(() => {
    const list = element.current;
    if (list === null) return undefined;
    const observer = new ResizeObserver(measure);
    observer.observe(list);
    return () => observer.disconnect();
  }, [count]);
  return { element, height, shown, measure };
}

const ROWS_LEFT = 20;

interface CardProps extends Omit<SideProps, "experiment"> {
  readonly isCurrent: boolean;
  /** Whether the tab key leads to this card. */
  readonly isStop: boolean;
  readonly columns: { readonly gridTemplateColumns: string };
  readonly onOpen: () => void;
}

function Card({ pair, compared, isDiff, isCurrent, isStop, columns, onOpen }: CardProps) {
  return (
    <button
      type="button"
      aria-current={isCurrent ? "true" : undefined}
      tabIndex={isStop ? 0 : -1}
      className={classes(style["card"], isCurrent && style["current"])}
      style={columns}
      onClick={onOpen}
    >
      <div className={style["side"]}>
        <p className={style["input"]}>{blockOf(pair.input)}</p>
        {pair.expected !== null && (
          <p className={style["expected"]}>
            <span className={style["faint"]}>expected</span> {blockOf(pair.expected)}
          </p>
        )}
      </div>
      {inColumns(compared).map((experiment) => (
        <Side key={experiment.id} {...{ pair, experiment, compared, isDiff }} />
      ))}
    </button>
  );
}

/** Moves through the cards by keys, and by the commands of the screen. */
function useMoves(grid: GridState, ids: readonly string[], list: ReturnType<typeof useWindow>) {
  const { element, height, measure } = list;
  const focus = (id: string | null): void => {
    const index = id === null ? -1 : ids.indexOf(id);
    const cards = element.current;
    if (index < 0 || cards === null) return;
    grid.cursor.set(id);
    const to = scrollFor(index, cards.scrollTop, cards.clientHeight, height);
    if (to !== null) cards.scrollTop = to;
    measure();
    window.setTimeout(() => cards.querySelector<HTMLElement>("[aria-current=true]")?.focus({ preventScroll: true }));
  };
  useEffect(() => {
    grid.inner.actions = {
      move: (by) => focus(moved(ids, grid.cursor.at.peek(), by)),
      focus: (id) => focus(id ?? grid.cursor.at.peek() ?? ids[0] ?? null),
      open: () => undefined,
      scrollToTop: () => element.current?.scrollTo({ top: 0 }),
    };
    return () => {
      grid.inner.actions = null;
    };
  });
  return (event: KeyboardEvent<HTMLElement>): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    focus(moved(ids, grid.cursor.at.peek(), by));
  };
}

export function GridView({ compared, pairs, grid, isDiff, onEnd, onOpen }: GridViewProps) {
  const list = useWindow(pairs.length);
  const { element, height, shown, measure } = list;
  const experiments = inColumns(compared);
  const ids = pairs.map(pairIdOf);
  const current = grid.cursor.at.value;
  const onKeyDown = useMoves(grid, ids, list);
  const isNear = shown.end >= pairs.length - ROWS_LEFT;
  useEffect(() => {
    if (isNear) onEnd();
  }, [isNear, pairs.length, onEnd]);
  const columns = { gridTemplateColumns: `minmax(12rem, 1fr) repeat(${experiments.length}, minmax(14rem, 2fr))` };
  return (
    <div className={style["view"]}>
      <div className={style["heads"]} style={columns} aria-hidden="true">
        <span>Input and expected</span>
        {experiments.map(({ id, name }) => (
          <span key={id}>{id === compared.base ? `${name} (base)` : name}</span>
        ))}
      </div>
      <div ref={element} className={style["list"]} onScroll={measure} onKeyDown={onKeyDown}>
        <ul aria-label="Compared rows" style={{ height: `${pairs.length * height}px` }} className={style["cards"]}>
          {pairs.slice(shown.first, shown.end).map((pair, offset) => {
            const index = shown.first + offset;
            const id = ids[index] ?? pair.key;
            return (
              <li key={id} className={style["item"]} style={{ top: `${index * height}px`, height: `${height - 8}px` }}>
                <Card
                  {...{ pair, compared, isDiff, columns }}
                  isCurrent={id === current}
                  isStop={id === current || (index === 0 && !ids.includes(current ?? ""))}
                  onOpen={() => {
                    grid.cursor.set(id);
                    onOpen(pair);
                  }}
                />
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}
