// An experiment and its comparison with others: finds the project and the experiments, then shows them.
import { useQuery } from "@tanstack/react-query";
import type { ComponentType } from "react";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import type { NamedProject } from "../../api/schema";
import type { RowShape } from "../../btql";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { Skeleton } from "../../design/Skeleton";
import { isKept } from "../../lib/address";
import { useLinks } from "../../lib/links";
import type { Bounds } from "../../lib/range";
import type { SpanSource, TracePanelProps } from "../../lib/trace";
import { Compare } from "./parts/Compare";
import { resolvedQuery } from "./queries";
import { keptFilterQuery } from "./useAddress";
import style from "./screen.module.css";
import type { CompareState } from "./url";

/** The properties of the bar that edits a filter as chips or as text. */
export interface FilterBarProps {
  readonly scope: {
    readonly organization: string;
    readonly source: SpanSource;
    readonly shape: RowShape;
    readonly bounds: Bounds;
    readonly filter: string;
    readonly version?: string;
  };
  readonly onChange: (filter: string, how: "push" | "replace") => void;
}

export interface CompareScreenProps {
  readonly state: CompareState;
  /** What shows a trace; null if this version has none. The frame hands it over, because features do not know each other. */
  readonly TracePanel: ComponentType<TracePanelProps> | null;
  /** What edits the filter, handed over likewise; null for a line of text. */
  readonly FilterBar: ComponentType<FilterBarProps> | null;
}

const LINES = [[30], [20, 20, 20], [60, 10], [60, 10], [60, 10]];

function Found(props: CompareScreenProps & { readonly project: NamedProject }) {
  const { state, project } = props;
  const { organization, name, compared, isAlone } = state;
  const links = useLinks();
  const query = useQuery(resolvedQuery(organization, project.id, { name, compared, isAlone }));
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<Skeleton lines={LINES} />}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {({ main, others, unknown }) =>
        main === null ? (
          <Empty action={<ButtonLink href={links.experiments(organization, state.project)}>Show all experiments</ButtonLink>}>
            {state.project} has no experiment {name} that you may see. It may have been renamed or deleted.
          </Empty>
        ) : (
          <Compare key={main.id} {...props} {...{ main, others, unknown }} />
        )
      }
    </Loaded>
  );
}

/** The comparison, with the filter of the address or of the record that the address names. */
function Filtered(props: CompareScreenProps & { readonly project: NamedProject }) {
  const { state, project } = props;
  const isNamed = isKept(state.view) && state.filter === "";
  const query = useQuery({ ...keptFilterQuery(state.organization, project.id, state.view), enabled: isNamed });
  if (!isNamed) return <Found {...props} />;
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<Skeleton lines={LINES} />}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {(filter) => <Found {...props} state={{ ...state, filter }} />}
    </Loaded>
  );
}

export function CompareScreen(props: CompareScreenProps) {
  const { state } = props;
  const links = useLinks();
  const query = useQuery(projectQuery(state.organization, state.project));
  return (
    <div className={style["screen"]}>
      <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(project) =>
          project === null ? (
            <Empty action={<ButtonLink href={links.home(state.organization)}>Show the projects</ButtonLink>}>
              {state.organization} has no project {state.project} that you may see.
            </Empty>
          ) : (
            <Filtered {...props} project={project} />
          )
        }
      </Loaded>
    </div>
  );
}
