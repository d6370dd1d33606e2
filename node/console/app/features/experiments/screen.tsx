// A project's experiments: finds the project, then shows the list.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { useLinks } from "../../lib/links";
import { List } from "./parts/List";
import style from "./screen.module.css";
import type { ExperimentsState } from "./url";

export function ExperimentsScreen({ state }: { readonly state: ExperimentsState }) {
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
            <List key={project.id} state={state} project={project} />
          )
        }
      </Loaded>
    </div>
  );
}
