// A trace on a page of its own.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { Skeleton } from "../../design/Skeleton";
import { navigate } from "../../lib/router";
import type { TraceView } from "../../lib/trace";
import { TracePanel } from "./panel";
import style from "./screen.module.css";
import { traceUrl, type TraceState } from "./url";

const LINES = [[40], [60], [50]] as const;

export function TraceScreen({ state }: { readonly state: TraceState }) {
  const project = useQuery(projectQuery(state.organization, state.project));
  const onView = (view: TraceView): void => navigate(traceUrl.write({ ...state, view }), "replace");
  const onVersion = (version: string): void => navigate(traceUrl.write({ ...state, version }), "push");
  return (
    <div className={style["screen"]}>
      <h1 className="only-spoken" tabIndex={-1}>
        Trace in {state.project}
      </h1>
      <Loaded reading={readingOf(project)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => project.refetch())}>
        {(found) =>
          found === null ? (
            <Empty>There is no project {state.project}, or you cannot see it.</Empty>
          ) : (
            <TracePanel
              organization={state.organization}
              project={found}
              source={
                state.experiment === "" ? { kind: "project_logs", id: found.id } : { kind: "experiment", id: state.experiment }
              }
              root={state.root}
              view={state.view}
              onView={onView}
              version={state.version}
              onVersion={onVersion}
            />
          )
        }
      </Loaded>
    </div>
  );
}
