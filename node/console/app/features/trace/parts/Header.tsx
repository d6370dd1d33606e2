// The head of an open trace: its facts, the way it is shown, what is looked for, and what can be done.
import { useMemo } from "react";
import type { SpanHead } from "../../../api/spans";
import { Button, ButtonLink, IconButton } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { withKeys } from "../../../design/Kbd";
import { Menu } from "../../../design/Menu";
import { duration, exactCount, money, shortCount } from "../../../lib/numbers";
import { TRACE_LENSES } from "../../../lib/trace";
import { itemsOf, pageOf } from "../menu";
import { NONE, type TraceTree } from "../tree/model";
import { Find, type FindProps } from "./Find";
import style from "./Header.module.css";

const NAMES = { tree: "Tree", thread: "Thread", flame: "Flame" } as const;

interface Totals {
  readonly tokens: number | null;
  readonly cost: number | null;
}

/** Sums tokens and cost of the calls of models; of a trace without such calls, what its root says. */
function totalsOf(tree: TraceTree): Totals {
  let tokens: number | null = null;
  let cost: number | null = null;
  let hasModel = false;
  for (const span of tree.spans) {
    if (span.cost !== null) cost = (cost ?? 0) + span.cost;
    if (span.type !== "llm") continue;
    hasModel = true;
    if (span.tokens !== null) tokens = (tokens ?? 0) + span.tokens;
  }
  const root = tree.root === NONE ? undefined : tree.spans[tree.root];
  return { tokens: hasModel ? tokens : (root?.tokens ?? null), cost };
}

const plural = (count: number, word: string): string => `${exactCount(count)} ${word}${count === 1 ? "" : "s"}`;

function Facts({ tree }: { readonly tree: TraceTree }) {
  const root = tree.root === NONE ? undefined : tree.spans[tree.root];
  const { tokens, cost } = useMemo(() => totalsOf(tree), [tree]);
  const isRunning = tree.root !== NONE && tree.isOpen[tree.root] === 1;
  const name = root === undefined || root.name === "" ? "Trace" : root.name;
  return (
    <>
      <h2 className={style["name"]} title={name}>
        {name}
      </h2>
      <ul className={style["facts"]} aria-label="Facts of the trace">
        {isRunning && <li className={style["running"]}>running</li>}
        <li>{duration((tree.last - tree.first) * 1000)}</li>
        {tokens !== null && <li title={plural(tokens, "token")}>{shortCount(tokens)} tok</li>}
        {cost !== null && <li>{money(cost)}</li>}
        <li>{plural(tree.spans.length, "span")}</li>
        <li className={classes(tree.errors > 0 && style["bad"])}>{plural(tree.errors, "error")}</li>
      </ul>
    </>
  );
}

/** How the trace is shown, and what is looked for in it. */
function Ways({ props, trace, findField }: FindProps) {
  const { view, onView } = props;
  return (
    <div className={style["line"]}>
      <div role="group" aria-label="Show the trace as" className={style["lenses"]}>
        {TRACE_LENSES.map((lens) => (
          <Button key={lens} look="quiet" aria-pressed={view.lens === lens} onClick={() => onView({ ...view, lens })}>
            {NAMES[lens]}
          </Button>
        ))}
      </div>
      <Find props={props} trace={trace} findField={findField} />
    </div>
  );
}

interface HeaderProps extends FindProps {
  readonly head: SpanHead | undefined;
  readonly menuId: string;
  readonly onAdd: () => void;
  readonly onChooseVersion: () => void;
}

export function Header({ props, trace, head, findField, menuId, onAdd, onChooseVersion }: HeaderProps) {
  const { onStep, onClose } = props;
  const isThere = trace.tree !== null && trace.tree.spans.length > 0;
  return (
    <header className={style["header"]}>
      <div className={style["line"]}>
        {isThere && trace.tree !== null ? <Facts tree={trace.tree} /> : <h2 className={style["name"]}>Trace</h2>}
        <span className={style["ways"]}>
          {isThere && (
            <Menu label="Actions of the trace" button="Actions" buttonId={menuId} items={itemsOf(props, trace, head, { add: onAdd, chooseVersion: onChooseVersion })} />
          )}
          {onStep !== undefined && (
            <>
              <IconButton icon="up" label="Previous trace" hint={withKeys("Previous trace", "K")} onClick={() => onStep(-1)} />
              <IconButton icon="down" label="Next trace" hint={withKeys("Next trace", "J")} onClick={() => onStep(1)} />
            </>
          )}
          {onClose !== undefined && (
            <>
              <ButtonLink look="quiet" href={pageOf(props)} title="Open the trace on a page of its own">
                Page
              </ButtonLink>
              <IconButton icon="close" label="Close the trace" hint={withKeys("Close the trace", "Escape")} onClick={onClose} />
            </>
          )}
        </span>
      </div>
      {trace.tree?.spans.length !== 0 && <Ways props={props} trace={trace} findField={findField} />}
    </header>
  );
}
