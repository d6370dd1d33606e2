// An open pair: its input, and its outputs or traces side by side.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ComponentType, type ReactNode } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { Compared, ComparisonRequest, Pair, Trial } from "../../../api/comparison";
import type { NamedProject } from "../../../api/schema";
import { Button, IconButton } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Empty } from "../../../design/Empty";
import { withKeys } from "../../../design/Kbd";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import type { TracePanelProps } from "../../../lib/trace";
import { pairQuery } from "../queries";
import { inColumns, measuresIn } from "../summaries";
import { TABS, type CompareState, type Tab } from "../url";
import { blockOf } from "../values";
import { Column } from "./Column";
import style from "./Pair.module.css";
import { Traces } from "./Traces";

export interface PairPanelProps {
  readonly state: CompareState;
  readonly project: NamedProject;
  readonly compared: Compared;
  readonly request: ComparisonRequest;
  /** The pair as the list has it; null if it is not on the pages that were read. */
  readonly known: Pair | null;
  readonly TracePanel: ComponentType<TracePanelProps> | null;
  readonly change: (part: Partial<CompareState>) => void;
  readonly onClose: () => void;
  readonly onStep: (by: 1 | -1) => void;
}

const TAB_TITLES: Readonly<Record<Tab, string>> = { outputs: "Outputs", trace: "Traces" };
const LINES = [[20], [60, 20], [50], [40, 10]];

interface BarProps extends Pick<PairPanelProps, "state" | "change" | "onClose" | "onStep" | "TracePanel"> {
  readonly isWide: boolean;
  readonly onWide: () => void;
}

function Bar({ state, change, onClose, onStep, TracePanel, isWide, onWide }: BarProps) {
  return (
    <header className={style["bar"]}>
      <div className={style["tabs"]} role="group" aria-label="What is shown side by side">
        {(TracePanel === null ? [] : TABS).map((tab) => (
          <button
            key={tab}
            type="button"
            aria-pressed={tab === state.tab}
            className={classes(style["tab"], tab === state.tab && style["on"])}
            onClick={() => change({ tab })}
          >
            {TAB_TITLES[tab]}
          </button>
        ))}
      </div>
      <IconButton icon="up" label="Previous pair" hint={withKeys("Previous pair", "K")} onClick={() => onStep(-1)} />
      <IconButton icon="down" label="Next pair" hint={withKeys("Next pair", "J")} onClick={() => onStep(1)} />
      <Button look="quiet" aria-pressed={isWide} onClick={onWide}>
        {isWide ? "Beside the rows" : "Full width"}
      </Button>
      <IconButton icon="close" label="Close the pair" hint={withKeys("Close the pair", "Escape")} onClick={onClose} />
    </header>
  );
}

function Field({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className={style["field"]} aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** Which trial of each experiment is shown: the one that the address names, else the first. */
function useTrials(pair: Pair, row: string) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, number>>(new Map());
  useEffect(() => setChosen(new Map()), [pair.key]);
  return {
    trialOf: (experiment: string): Trial | undefined => {
      const trials = pair.cells.find((cell) => cell.experiment === experiment)?.trials ?? [];
      const index = chosen.get(experiment);
      if (index !== undefined) return trials[index];
      return trials.find(({ id, rootSpanId }) => id === row || rootSpanId === row) ?? trials[0];
    },
    choose: (experiment: string, index: number): void => setChosen(new Map([...chosen, [experiment, index]])),
  };
}

function Content(props: PairPanelProps & { readonly pair: Pair }) {
  const { pair, compared, state, TracePanel } = props;
  const { trialOf, choose } = useTrials(pair, state.row);
  const experiments = inColumns(compared);
  const measures = measuresIn(compared).filter(({ unit, name }) => unit === "score" || name === "metrics.duration");
  const before = state.isDiff && compared.base !== null ? trialOf(compared.base) : undefined;
  const isTrace = state.tab === "trace" && TracePanel !== null;
  if (isTrace) return <Traces {...props} experiments={experiments} trialOf={trialOf} TracePanel={TracePanel} />;
  return (
    <div className={style["content"]}>
      <Field title="Input">
        <pre className={style["block"]}>{blockOf(pair.input)}</pre>
      </Field>
      {pair.expected !== null && (
        <Field title="Expected">
          <pre className={style["block"]}>{blockOf(pair.expected)}</pre>
        </Field>
      )}
      <div className={style["columns"]}>
        {experiments.map((experiment) => (
          <Column
            key={experiment.id}
            experiment={experiment}
            isBase={experiment.id === compared.base}
            cell={pair.cells.find((cell) => cell.experiment === experiment.id)}
            trial={trialOf(experiment.id)}
            before={before}
            measures={measures}
            onTrial={(index) => choose(experiment.id, index)}
          />
        ))}
      </div>
    </div>
  );
}

/** Whether the panel takes the whole width, kept while the page is open. */
let wasWide = false;

export function PairPanel(props: PairPanelProps) {
  const { state, request, known, change } = props;
  const query = useQuery(pairQuery(state.organization, request, state.row, known));
  const [isWide, setWide] = useState(wasWide);
  const span = query.data?.span ?? null;
  useEffect(() => {
    if (span !== null && !query.isPlaceholderData) change({ row: span.root, span: span.span, tab: "trace" });
  }, [span]);
  const onWide = (): void => {
    wasWide = !isWide;
    setWide(wasWide);
  };
  return (
    <aside className={classes(style["panel"], isWide && style["wide"])} aria-label="Open pair">
      <Bar {...props} isWide={isWide} onWide={onWide} />
      <div className={style["inside"]}>
        <Loaded
          reading={readingOf(query)}
          skeleton={<Skeleton lines={LINES} />}
          onSignIn={() => void askToSignIn().then(() => query.refetch())}
        >
          {(open) =>
            open === null ? (
              <Empty action={<Button onClick={props.onClose}>Show all rows</Button>}>
                No compared experiment has the row {state.row}. It may have been deleted, or it has not arrived yet.
              </Empty>
            ) : (
              <Content {...props} pair={open.pair} />
            )
          }
        </Loaded>
      </div>
    </aside>
  );
}
