// The review of a project's rows: finds the project, then shows the queues, one of them, or the scores.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../api/gate";
import { projectQuery, readingOf } from "../../api/queries";
import type { NamedProject, Session } from "../../api/schema";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { lazily } from "../../design/Lazily";
import { Loaded } from "../../design/Loaded";
import { SCREEN_SKELETON } from "../../design/ScreenSkeleton";
import { useLinks } from "../../lib/links";
import type { PagePlace } from "../../lib/pages";
import type { Parts } from "./parts";
import { Queues } from "./parts/Queues";
import style from "./screen.module.css";
import { readReviewState, writeReviewState, type ReviewState } from "./url";

const Queue = lazily(async () => (await import("./parts/Queue")).Queue);
const Scores = lazily(async () => (await import("./parts/Scores")).Scores);

interface FoundProps {
  readonly state: ReviewState;
  readonly project: NamedProject;
  readonly userId: string;
  readonly parts: Parts;
}

function Found(props: FoundProps) {
  const { state, project } = props;
  const place = { organization: state.organization, projectId: project.id };
  switch (state.at) {
    case "queues":
      return <Queues {...props} place={place} />;
    case "queue":
      return <Queue key={state.queue} {...props} state={state} place={place} />;
    case "scores":
      return <Scores {...props} place={place} />;
  }
}

interface ReviewProps {
  readonly place: PagePlace;
  readonly session: Session;
  readonly parts: Parts;
}

export function ReviewScreen({ place, session, parts }: ReviewProps) {
  const { organization, project: name } = place;
  const links = useLinks();
  const state = readReviewState(place);
  const query = useQuery(projectQuery(organization, name));
  if (state === null) {
    const queues = writeReviewState({ organization, project: name, at: "queues" });
    return <Empty action={<ButtonLink href={queues}>Show the queues</ButtonLink>}>There is no page of this address.</Empty>;
  }
  return (
    <div className={style["screen"]}>
      <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(project) =>
          project === null ? (
            <Empty action={<ButtonLink href={links.home(organization)}>Show the projects</ButtonLink>}>
              {organization} has no project {name} that you may see.
            </Empty>
          ) : (
            <Found key={project.id} state={state} project={project} userId={session.user.id} parts={parts} />
          )
        }
      </Loaded>
    </div>
  );
}
