// A dataset: finds the project and the dataset, then shows its rows.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import type { NamedProject } from "../../api/schema";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { useLinks } from "../../lib/links";
import { Dataset } from "./parts/Dataset";
import { namedQuery } from "./queries";
import style from "./screen.module.css";
import type { DatasetState } from "./url";

function Named({ state, project }: { readonly state: DatasetState; readonly project: NamedProject }) {
  const links = useLinks();
  const query = useQuery(namedQuery(state.organization, project.id, state.name));
  return (
    <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(dataset) => {
        if (dataset === null) {
          return (
            <Empty action={<ButtonLink href={links.datasets(state.organization, state.project)}>Show the datasets</ButtonLink>}>
              The project has no dataset {state.name} that you may see.
            </Empty>
          );
        }
        const { organization, project: projectName } = state;
        const place = { organization, project: projectName, projectId: project.id, id: dataset.id, name: dataset.name };
        return <Dataset key={dataset.id} state={state} place={place} dataset={dataset} />;
      }}
    </Loaded>
  );
}

export function DatasetScreen({ state }: { readonly state: DatasetState }) {
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
            <Named state={state} project={project} />
          )
        }
      </Loaded>
    </div>
  );
}
