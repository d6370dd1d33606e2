// The prompts and the functions of a project: finds the project and what the address names, then shows it.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import type { NamedProject, Session } from "../../api/schema";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { useLinks } from "../../lib/links";
import type { PagePlace } from "../../lib/pages";
import { List } from "./parts/List";
import { Page } from "./parts/Page";
import { namedQuery, type ProjectPlace } from "./queries";
import style from "./screen.module.css";
import { promptsAddress, promptsDefaults, readPromptsPlace, type PromptsState } from "./url";

interface ShownProps {
  readonly state: PromptsState;
  readonly place: ProjectPlace;
  readonly userId: string;
}

function Named({ state, place, userId }: ShownProps) {
  const query = useQuery(namedQuery(place, state.slug));
  const list = promptsAddress(promptsDefaults(state.kind, state.organization, state.project));
  return (
    <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(record) =>
        record === null ? (
          <Empty action={<ButtonLink href={list}>Show the {state.kind}</ButtonLink>}>
            The project has no {state.kind === "prompts" ? "prompt" : "function"} {state.slug} that you may see.
          </Empty>
        ) : (
          <Page key={record.id} {...{ state, place, userId, record }} />
        )
      }
    </Loaded>
  );
}

function Within({ state, project, userId }: { readonly state: PromptsState; readonly project: NamedProject; readonly userId: string }) {
  const place = { organization: state.organization, project: state.project, projectId: project.id };
  const props = { state, place, userId };
  return state.slug === "" ? <List key={state.kind} {...props} /> : <Named {...props} />;
}

interface ScreenProps {
  readonly place: PagePlace;
  readonly session: Session;
}

/** The screen of prompts and of functions, which are records of one kind and have the same page. */
export function PromptsScreen({ place, session }: ScreenProps) {
  const links = useLinks();
  const query = useQuery(projectQuery(place.organization, place.project));
  const state = readPromptsPlace(place);
  if (state === null) {
    const address = links.page(place.page.id, place.organization, place.project);
    return <Empty action={<ButtonLink href={address}>Show all</ButtonLink>}>There is nothing at this address.</Empty>;
  }
  return (
    <div className={style["screen"]}>
      <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(project) =>
          project === null ? (
            <Empty action={<ButtonLink href={links.home(state.organization)}>Show the projects</ButtonLink>}>
              {state.organization} has no project {state.project} that you may see.
            </Empty>
          ) : (
            <Within key={project.id} {...{ state, project }} userId={session.user.id} />
          )
        }
      </Loaded>
    </div>
  );
}
