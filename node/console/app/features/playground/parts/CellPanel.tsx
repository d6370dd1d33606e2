// The panel of a cell: the whole answer, what tools were called, why scorers decided so, and what it took.
import type { ReactNode } from "react";
import { toolCallsOf } from "../../../api/invoke";
import { Button, IconButton } from "../../../design/Button";
import { Copy } from "../../../design/Copy";
import { withKeys } from "../../../design/Kbd";
import { useLinks } from "../../../lib/links";
import { printJson } from "../../../lib/json";
import { duration, exactCount, money, score } from "../../../lib/numbers";
import { hasAnswer, isUnderWay, textOf, timeOf, type Cell } from "../cells";
import type { CellKey } from "../queue";
import { linesOf } from "../rows";
import type { Desk } from "../useDesk";
import { comparedText, Failure, stateName, Text } from "./CellView";
import style from "./Panel.module.css";

/** Longer texts are cut; copying gives all. */
const SHOWN_MAX = 100_000;

interface SectionProps {
  readonly title: string;
  readonly text?: string;
  readonly children?: ReactNode;
}

function Section({ title, text, children }: SectionProps) {
  return (
    <section className={style["section"]} aria-label={title}>
      <div className={style["sectionHead"]}>
        <h3>{title}</h3>
        {text !== undefined && text !== "" && <Copy text={text} what={`the ${title.toLowerCase()}`} />}
      </div>
      {children ?? <pre>{text === "" ? "-" : text?.slice(0, SHOWN_MAX)}</pre>}
      {(text?.length ?? 0) > SHOWN_MAX && <p className={style["note"]}>This is the start of it. Copy it to have all.</p>}
    </section>
  );
}

function Tools({ cell }: { readonly cell: Cell }) {
  const calls = toolCallsOf(cell.value);
  const { tools, reasoning } = cell.answer;
  return (
    <>
      {calls?.map(({ id, name, arguments: given }, index) => (
        <Section key={`${id}${index}`} title={`Call of ${name}`} text={typeof given === "string" ? given : printJson(given)} />
      ))}
      {tools.length > 0 && (
        <Section title="Tools that the server ran">
          <ul>
            {tools.map(({ id, name, state }) => (
              <li key={id}>
                {name} <span className={style["note"]}>{state}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {reasoning !== "" && <Section title="Reasoning" text={reasoning} />}
    </>
  );
}

function Given({ cell }: { readonly cell: Cell }) {
  if (cell.scores.length === 0) return null;
  return (
    <Section title="Scores">
      <dl className={style["scores"]}>
        {cell.scores.map(({ name, value, error, reason }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {error === null ? score(value) : <span className={style["bad"]}>{error}</span>}
              {reason !== "" && <p className={style["note"]}>{reason}</p>}
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Took({ desk, cell }: { readonly desk: Desk; readonly cell: Cell }) {
  const links = useLinks();
  const { figures, root } = cell;
  const spans = `SELECT * FROM playground_logs('${desk.record.id}') WHERE root_span_id = '${root}'`;
  const endpoint = cell.answer.head?.endpoint ?? null;
  return (
    <Section title="What it took">
      <p className={style["facts"]}>
        <span>{duration(timeOf(cell))}</span>
        {figures?.tokens != null && <span>{exactCount(figures.tokens)} tokens</span>}
        {figures?.cost != null && <span>{money(figures.cost)}</span>}
        {figures !== null && figures.calls > 1 && <span>{exactCount(figures.calls)} model calls</span>}
        {endpoint !== null && <span>by the secret {endpoint}</span>}
        {root !== "" && <a href={links.query(desk.place.organization, spans)}>Show its spans</a>}
      </p>
    </Section>
  );
}

export function CellPanel({ desk, at }: { readonly desk: Desk; readonly at: CellKey }) {
  const { runs, rows, titles, state, playground, change } = desk;
  const cell = runs.store.at(at).value;
  const [first] = playground.variants;
  const base = state.isDiff && first !== undefined && first.id !== at.variant ? runs.store.at({ ...at, variant: first.id }).value : null;
  const row = rows.byId.get(at.row);
  const isOpen = isUnderWay(cell);
  const text = cell === null ? "" : textOf(cell);
  return (
    <aside className={style["panel"]} aria-label="Open cell">
      <header className={style["head"]}>
        <h2>{titles.get(at.variant)}</h2>
        <Button look="quiet" icon={isOpen ? "stop" : "play"} onClick={() => (isOpen ? runs.stop(at) : runs.start([at]))}>
          {isOpen ? "Stop" : "Run"}
        </Button>
        <IconButton icon="close" label="Close the panel" hint={withKeys("Close the panel", "Escape")} onClick={() => change({ variant: "", row: "" })} />
      </header>
      <div className={style["inside"]}>
        <p className={style["note"]}>{stateName(cell)}</p>
        {cell !== null && cell.failure !== null && (
          <Section title="Failure">
            <Failure cell={cell} organization={desk.place.organization} />
          </Section>
        )}
        {text !== "" && (
          <Section title="Output" text={text}>
            <pre>
              <Text text={text.slice(0, SHOWN_MAX)} before={cell !== null && hasAnswer(cell) ? comparedText(base) : null} />
            </pre>
          </Section>
        )}
        {cell !== null && (
          <>
            <Tools cell={cell} />
            <Given cell={cell} />
            <Took desk={desk} cell={cell} />
          </>
        )}
        {row !== undefined && <Section title="Input" text={linesOf(row.input)} />}
        {row !== undefined && row.expected !== null && <Section title="Expected" text={linesOf(row.expected)} />}
      </div>
    </aside>
  );
}
