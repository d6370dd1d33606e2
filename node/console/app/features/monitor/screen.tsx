// A project's monitor: finds the project and the dashboard, then shows the cards.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { useLinks } from "../../lib/links";
import { Monitor, type MonitorProps } from "./parts/Monitor";
import { dashboardsQuery } from "./queries";
import style from "./screen.module.css";

function Found(props: MonitorProps & { readonly projectId: string }) {
  const { state, projectId } = props;
  const { organization, project, view } = state;
  const links = useLinks();
  const query = useQuery(dashboardsQuery({ organization, projectId }));
  if (view === "") return <Monitor key="" {...props} dashboards={query.data ?? []} dashboard={null} />;
  return (
    <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(dashboards) => {
        const dashboard = dashboards.find(({ id }) => id === view);
        return dashboard === undefined ? (
          <Empty action={<ButtonLink href={links.monitor(organization, project)}>Show the overview</ButtonLink>}>
            {project} has no dashboard of this address. It may have been deleted.
          </Empty>
        ) : (
          <Monitor key={dashboard.id} {...props} {...{ dashboards, dashboard }} />
        );
      }}
    </Loaded>
  );
}

export function MonitorScreen(props: MonitorProps) {
  const { state } = props;
  const links = useLinks();
  const query = useQuery(projectQuery(state.organization, state.project));
  return (
    <div className={style["screen"]}>
      <h1 className="only-spoken" tabIndex={-1}>
        Monitor of {state.project}
      </h1>
      <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(project) =>
          project === null ? (
            <Empty action={<ButtonLink href={links.home(state.organization)}>Show the projects</ButtonLink>}>
              {state.organization} has no project {state.project} that you may see.
            </Empty>
          ) : (
            <Found key={project.id} {...props} projectId={project.id} />
          )
        }
      </Loaded>
    </div>
  );
}
