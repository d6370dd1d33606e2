// Playgrounds: their list, an open one, or one that is made of a span.
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
import { DeskView } from "./parts/DeskView";
import { List } from "./parts/List";
import style from "./parts/List.module.css";
import { Replay } from "./parts/Replay";
import { playgroundQuery, type Place } from "./queries";
import { playgroundDefaults, readPlace, writePlace, type PlaygroundState } from "./url";

interface OpenProps {
  readonly place: Place;
  readonly state: PlaygroundState;
  readonly session: Session;
}

function Open({ place, state, session }: OpenProps) {
  const query = useQuery(playgroundQuery(place, state.id));
  const list = writePlace(playgroundDefaults(place.organization, place.project));
  return (
    <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(found) =>
        found === null ? (
          <Empty action={<ButtonLink href={list}>Show the playgrounds</ButtonLink>}>The project has no such playground that you may see.</Empty>
        ) : (
          <DeskView key={found.record.id} {...{ place, state }} record={found.record} runs={found.runs} userId={session.user.id} />
        )
      }
    </Loaded>
  );
}

function Shown({ state, project, session }: { readonly state: PlaygroundState; readonly project: NamedProject; readonly session: Session }) {
  const place = { organization: state.organization, project: state.project, projectId: project.id };
  if (state.id !== "") return <Open key={state.id} {...{ place, state, session }} />;
  return state.span === "" ? <List place={place} /> : <Replay key={state.span} {...{ place, state }} />;
}

export function PlaygroundScreen({ place, session }: { readonly place: PagePlace; readonly session: Session }) {
  const links = useLinks();
  const state = readPlace(place);
  const query = useQuery(projectQuery(place.organization, place.project));
  if (state === null) return <Empty>There is no such page of playgrounds.</Empty>;
  return (
    <div className={style["screen"]}>
      <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(project) =>
          project === null ? (
            <Empty action={<ButtonLink href={links.home(state.organization)}>Show the projects</ButtonLink>}>
              {state.organization} has no project {state.project} that you may see.
            </Empty>
          ) : (
            <Shown {...{ state, project, session }} />
          )
        }
      </Loaded>
    </div>
  );
}
