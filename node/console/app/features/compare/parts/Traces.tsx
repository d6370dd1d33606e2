// The traces of an open pair side by side, which scroll together.
import { useRef, type ComponentType, type UIEvent } from "react";
import type { ComparedExperiment, Trial } from "../../../api/comparison";
import { classes } from "../../../design/classes";
import { TRACE_VIEW, type TracePanelProps, type TraceView } from "../../../lib/trace";
import { useState } from "react";
import { readVersion, sentVersion } from "../../../lib/version";
import type { PairPanelProps } from "./PairPanel";
import style from "./Pair.module.css";

interface TracesProps extends PairPanelProps {
  readonly experiments: readonly ComparedExperiment[];
  readonly trialOf: (experiment: string) => Trial | undefined;
  readonly TracePanel: ComponentType<TracePanelProps>;
}

/** The parts of a trace that scroll by themselves, in their order. */
const scrollable = (root: Element): readonly HTMLElement[] =>
  [...root.querySelectorAll<HTMLElement>("*")].filter(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight + 1);

/** Scrolls the counterparts of what was scrolled. */
function follow(moved: HTMLElement, columns: readonly Element[]): void {
  const own = columns.find((column) => column.contains(moved));
  if (own === undefined) return;
  const place = scrollable(own).indexOf(moved);
  for (const column of columns) {
    const other = column === own ? undefined : scrollable(column)[place];
    if (other !== undefined && other.className === moved.className) other.scrollTop = moved.scrollTop;
  }
}

export function Traces(props: TracesProps) {
  const { state, project, compared, experiments, trialOf, TracePanel, change } = props;
  const element = useRef<HTMLDivElement>(null);
  const [views, setViews] = useState<ReadonlyMap<string, TraceView>>(new Map());
  const main = compared.experiments[0]?.id;
  const viewOf = (id: string): TraceView => {
    const view = views.get(id) ?? TRACE_VIEW;
    return id === main ? { ...view, span: state.span } : view;
  };
  const onView = (id: string, view: TraceView): void => {
    setViews(new Map([...views, [id, view]]));
    if (id === main && view.span !== state.span) change({ span: view.span });
  };
  const onScroll = (event: UIEvent<HTMLElement>): void => {
    const { target } = event;
    if (!(target instanceof HTMLElement) || !target.matches(":hover, :focus-within")) return;
    follow(target, [...(element.current?.children ?? [])]);
  };
  return (
    <div
      ref={element}
      className={style["traces"]}
      style={{ gridTemplateColumns: `repeat(${experiments.length}, minmax(22rem, 1fr))` }}
      onScrollCapture={onScroll}
    >
      {experiments.map(({ id, name }) => {
        const trial = trialOf(id);
        return (
          <section key={id} className={style["trace"]} aria-label={`Trace of ${name}`}>
            <h3 className={classes(style["traceName"])}>
              {name}
              {id === compared.base && <span className={style["faint"]}> base</span>}
            </h3>
            {trial === undefined ? (
              <p className={style["absent"]}>There is no row of this key.</p>
            ) : (
              <TracePanel
                organization={state.organization}
                project={project}
                source={{ kind: "experiment", id }}
                root={trial.rootSpanId}
                view={viewOf(id)}
                onView={(view) => onView(id, view)}
                version={sentVersion(readVersion(state.version))}
              />
            )}
          </section>
        );
      })}
    </div>
  );
}
