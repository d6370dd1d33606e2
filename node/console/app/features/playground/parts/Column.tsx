// The head of a column: its prompt and model, the means of its cells, and what can be done with it.
import type { Variant } from "../../../api/playground";
import { Delta } from "../../../design/Delta";
import { Icon } from "../../../design/Icon";
import { Menu, type MenuItem } from "../../../design/Menu";
import { delta, duration, exactCount, money, score } from "../../../lib/numbers";
import { figuresOf, type Figures } from "../figures";
import type { Desk } from "../useDesk";
import { withCopy, withFirst, withoutVariant } from "../variants";
import style from "./Column.module.css";

/** What is counted of a column; it is counted again while cells run. */
function countedOf(desk: Desk, variant: string): Figures {
  const { store } = desk.runs;
  return figuresOf(desk.rows.all.map(({ id: row }) => store.get({ row, variant })));
}

function itemsOf(desk: Desk, variant: Variant, index: number): readonly MenuItem[] {
  const { editing, change, setOpened, runs, cellsOf, state } = desk;
  const { id, prompt } = variant;
  return [
    { id: "edit", title: "Edit", run: () => change({ variant: id, row: "" }) },
    { id: "run", title: "Run the column", run: () => runs.start(cellsOf([id])) },
    { id: "score", title: "Run the missing scorers", run: () => runs.score(cellsOf([id])) },
    { id: "models", title: "Add models to this prompt", run: () => setOpened({ what: "modelsOf", prompt }) },
    { id: "copy", title: "Copy with a prompt of its own", run: () => editing.edit((before) => withCopy(before, id)) },
    ...(index === 0 ? [] : [{ id: "first", title: "Compare the others with this", run: () => editing.edit((before) => withFirst(before, id)) }]),
    { id: "version", heading: "Save", title: "As a version of a prompt", run: () => setOpened({ what: "version", variant: id }) },
    { id: "experiment", title: "As an experiment", run: () => setOpened({ what: "experimentOf", variant: id }) },
    {
      id: "remove",
      heading: "Column",
      title: "Remove",
      run: () => {
        editing.edit((before) => withoutVariant(before, id));
        if (state.variant === id) change({ variant: "", row: "" });
      },
    },
  ];
}

interface MeansProps {
  readonly figures: Figures;
  readonly base: Figures | null;
  readonly count: number;
}

function Means({ figures, base, count }: MeansProps) {
  const { done, failed, scores, time, tokens, cost } = figures;
  return (
    <>
      <p className={style["facts"]}>
        <span>
          {exactCount(done)} of {exactCount(count)} done
        </span>
        {failed > 0 && <span className={style["bad"]}>{exactCount(failed)} failed</span>}
        {time !== null && <span title="Mean time of an answer">{duration(time)}</span>}
        {cost !== null && <span title={tokens === null ? undefined : `${exactCount(tokens)} tokens`}>{money(cost)}</span>}
      </p>
      <p className={style["facts"]}>
        {scores.map(({ name, mean, count: of }) => {
          const before = base?.scores.find((one) => one.name === name);
          const by = before === undefined ? 0 : mean - before.mean;
          return (
            <span key={name} title={`Mean of ${exactCount(of)} scores`}>
              <span className={style["name"]}>{name}</span> {score(mean)}
              {Math.abs(by) >= 0.005 && (
                <>
                  {" "}
                  <Delta value={by} text={delta(by)} tone={by > 0 ? "good" : "bad"} title="Difference to the first column" />
                </>
              )}
            </span>
          );
        })}
      </p>
    </>
  );
}

interface ColumnProps {
  readonly desk: Desk;
  readonly variant: Variant;
  readonly index: number;
}

export function Column({ desk, variant, index }: ColumnProps) {
  // counted again when this changes
  desk.runs.store.changes.value;
  const title = desk.titles.get(variant.id) ?? "";
  const prompt = desk.playground.prompts.find(({ id }) => id === variant.prompt);
  const first = desk.playground.variants[0];
  const base = first === undefined || index === 0 ? null : countedOf(desk, first.id);
  const isOpen = desk.state.variant === variant.id && desk.state.row === "";
  return (
    <div role="columnheader" aria-colindex={index + 2} aria-label={title} className={style["column"]} data-open={isOpen || undefined}>
      <div className={style["head"]}>
        <button
          type="button"
          className={style["title"]}
          aria-expanded={isOpen}
          title={`Edit ${title}`}
          onClick={() => desk.change(isOpen ? { variant: "", row: "" } : { variant: variant.id, row: "" })}
        >
          <span className={style["prompt"]}>{prompt?.name}</span>{" "}
          <span className={variant.model === "" ? style["bad"] : style["model"]}>{variant.model === "" ? "No model" : variant.model}</span>
        </button>
        <Menu label={`Actions of ${title}`} isAlone button={<Icon name="more" />} items={itemsOf(desk, variant, index)} />
      </div>
      <Means figures={countedOf(desk, variant.id)} base={base} count={desk.rows.all.length} />
    </div>
  );
}
