// One queue: reads what the review of its rows needs, and shows the first row that waits.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { NamedProject } from "../../../api/schema";
import { ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import type { Parts } from "../parts";
import { askingQuery, ownQuery, queueQuery, queuesQuery, settingsQuery, sourceQuery, type Place } from "../queries";
import { builtInQueues, savedQueue, waitingFor, type Queue as QueueOf } from "../queues";
import { askedOf } from "../scores";
import { writeReviewState, type ReviewState } from "../url";
import { Desk } from "./Desk";

const LINES = [[20], [60, 20], [50, 20], [55, 20]];

export interface QueueProps {
  readonly state: Extract<ReviewState, { at: "queue" }>;
  readonly project: NamedProject;
  readonly place: Place;
  readonly userId: string;
  readonly parts: Parts;
}

/** Reads everything that the queue needs, as one thing that is there or is not. */
function useEverything({ place, userId }: QueueProps, queue: QueueOf) {
  const source = useQuery(sourceQuery(place, queue));
  const read = useQuery(queueQuery(place, queue));
  const own = useQuery(ownQuery(place, queue, userId));
  const asking = useQuery(askingQuery(place));
  const settings = useQuery(settingsQuery(place));
  const readings = [readingOf(source), readingOf(read), readingOf(own), readingOf(asking), readingOf(settings)];
  const failed = readings.find(({ problem, data }) => problem !== null && data === undefined);
  const everything =
    source.data && read.data && own.data && asking.data && settings.data
      ? { source: source.data, read: read.data, own: own.data, asking: asking.data, settings: settings.data }
      : undefined;
  return { ...(failed ?? readingOf(read)), data: everything, isReading: everything === undefined && failed === undefined };
}

function Known({ queue, ...props }: QueueProps & { readonly queue: QueueOf }) {
  const reading = useEverything(props, queue);
  return (
    <Loaded reading={reading} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(reading.again)}>
      {({ source, read, own, asking, settings }) => (
        <Desk
          {...props}
          {...{ queue, source, read, own, settings }}
          items={waitingFor(read, own)}
          asked={askedOf(asking.scores, queue.kind, props.userId, asking.groups)}
        />
      )}
    </Loaded>
  );
}

export function Queue(props: QueueProps) {
  const { state, place, userId } = props;
  const builtIn = builtInQueues(userId).find(({ id }) => id === state.queue);
  const query = useQuery({ ...queuesQuery(place), enabled: builtIn === undefined });
  if (builtIn !== undefined) return <Known {...props} queue={builtIn} />;
  return (
    <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(saved) => {
        const queue = saved.find(({ id }) => id === state.queue);
        return queue === undefined ? (
          <Empty action={<ButtonLink href={writeReviewState({ ...state, at: "queues" })}>Show the queues</ButtonLink>}>
            {state.project} has no queue of this address. It may have been deleted.
          </Empty>
        ) : (
          <Known {...props} queue={savedQueue(queue)} />
        );
      }}
    </Loaded>
  );
}
