// A project's logs: finds the project, then shows the list.
import { useQuery } from "@tanstack/react-query";
import { useEffect, type ComponentType } from "react";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import type { NamedProject } from "../../api/schema";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { isKept } from "../../lib/address";
import { letGo } from "../../lib/first";
import { useLinks } from "../../lib/links";
import type { TracePanelProps } from "../../lib/trace";
import { keptFilterQuery } from "./kept";
import { Resolve } from "./parts/later";
import { Logs } from "./parts/Logs";
import style from "./screen.module.css";
import type { LogsState } from "./url";

export interface LogsScreenProps {
  readonly state: LogsState;
  /** The id of the person, for what is assigned to them. */
  readonly userId: string;
  /** What shows an open trace. The frame hands it over, because features do not know each other. */
  readonly TracePanel: ComponentType<TracePanelProps>;
}

/** The list of a project, with the filter of the address or of the record that the address names. */
function Found(props: LogsScreenProps & { readonly project: NamedProject }) {
  const { state, project } = props;
  const isNamed = isKept(state.view) && state.filter === "";
  const query = useQuery({ ...keptFilterQuery(state.organization, project.id, state.view), enabled: isNamed });
  const filter = isNamed ? query.data : state.filter;
  if (filter !== undefined) return <Logs key={project.id} {...props} state={isNamed ? { ...state, filter } : state} />;
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<p className={style["note"]}>Reading the filter of this link</p>}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {() => null}
    </Loaded>
  );
}

export function LogsScreen(props: LogsScreenProps) {
  const { state } = props;
  const links = useLinks();
  const query = useQuery(projectQuery(state.organization, state.project));
  const isAlone = query.data === null || query.error !== null || state.oid !== "";
  useEffect(() => {
    if (isAlone) letGo();
  }, [isAlone]);
  return (
    <div className={style["screen"]}>
      <h1 className="only-spoken" tabIndex={-1}>
        Logs of {state.project}
      </h1>
      <Loaded
        reading={readingOf(query)}
        skeleton={SCREEN_SKELETON}
        onSignIn={() => void askToSignIn().then(() => query.refetch())}
      >
        {(project) => {
          if (project === null) {
            return (
              <Empty action={<ButtonLink href={links.home(state.organization)}>Show the projects</ButtonLink>}>
                {state.organization} has no project {state.project} that you may see.
              </Empty>
            );
          }
          if (state.oid !== "") return <Resolve state={state} project={project} />;
          return <Found {...props} project={project} />;
        }}
      </Loaded>
    </div>
  );
}
