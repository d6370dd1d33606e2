// The queues of a project, with how many rows wait in each.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { problemOf } from "../../../lib/errors";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { NamedProject } from "../../../api/schema";
import { Button, ButtonLink } from "../../../design/Button";
import { Loaded } from "../../../design/Loaded";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands } from "../../../lib/commands";
import { exactCount } from "../../../lib/numbers";
import type { Parts } from "../parts";
import { ownQuery, queuesQuery, queueQuery, scoresQuery, type Place } from "../queries";
import { builtInQueues, savedQueue, tallyOf, type Queue } from "../queues";
import { isGiven } from "../scores";
import style from "../screen.module.css";
import { writeReviewState, type ReviewState } from "../url";
import { DeleteQueue, QueueDialog } from "./QueueDialog";

const LINES = Array.from({ length: 3 }, () => [24, 10]);

type Opened = { readonly what: "none" | "new" } | { readonly what: "edit" | "delete"; readonly queue: Queue };

interface QueuesProps {
  readonly state: ReviewState;
  readonly project: NamedProject;
  readonly place: Place;
  readonly userId: string;
  readonly parts: Parts;
}

interface RowProps {
  readonly queue: Queue;
  readonly props: QueuesProps;
  readonly onOpened: (opened: Opened) => void;
}

/** How many rows of a queue wait, in words. */
function Count({ queue, props: { place, userId } }: Omit<RowProps, "onOpened">) {
  const read = useQuery(queueQuery(place, queue));
  const own = useQuery(ownQuery(place, queue, userId));
  const error = read.error ?? own.error;
  if (error !== null) return <span className={style["bad"]}>Not counted: {problemOf(error, 0).text}</span>;
  if (read.data === undefined || own.data === undefined) return <span className={style["faint"]}>Counting</span>;
  const { all, done, waiting, isAbout } = tallyOf(read.data, own.data);
  const words = `${isAbout ? "about " : ""}${exactCount(waiting)} waiting`;
  return (
    <>
      <span className={waiting === 0 ? style["faint"] : style["waiting"]}>{words}</span>
      {all > 0 && (
        <span className={style["faint"]}>
          {exactCount(done)} of {exactCount(all)} done
        </span>
      )}
    </>
  );
}

function Row({ queue, props, onOpened }: RowProps) {
  const { organization, project } = props.state;
  const href = writeReviewState({ organization, project, at: "queue", queue: queue.id, row: "" });
  return (
    <li className={style["row"]}>
      <a href={href} className={style["name"]}>
        {queue.name}
      </a>
      {queue.kind === "experiment" && <span className={style["mark"]}>Experiments</span>}
      <span className={style["filter"]} title={queue.isSaved ? queue.filter : undefined}>
        {queue.isSaved && (queue.filter || "All rows")}
      </span>
      <span className={style["counts"]}>
        <Count queue={queue} props={props} />
      </span>
      {queue.isSaved && (
        <Menu
          label={`Actions of ${queue.name}`}
          button={<Icon name="more" />}
          isAlone
          items={[
            { id: "edit", title: "Name and filter…", run: () => onOpened({ what: "edit", queue }) },
            { id: "delete", title: "Delete…", run: () => onOpened({ what: "delete", queue }) },
          ]}
        />
      )}
    </li>
  );
}

export function Queues(props: QueuesProps) {
  const { state, place, userId, parts } = props;
  const { organization, project } = state;
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const query = useQuery(queuesQuery(place));
  const scores = useQuery(scoresQuery(place));
  const commands = useMemo(
    () => [{ id: "review.new", title: "New queue", group: "Review", keys: "n", run: () => setOpened({ what: "new" }) }],
    [],
  );
  useCommands(commands);
  const close = (): void => setOpened({ what: "none" });
  const toScores = writeReviewState({ organization, project, at: "scores" });
  const hasNoScore = scores.data !== undefined && !scores.data.some(isGiven);
  return (
    <>
      <header className={style["head"]}>
        <h1 tabIndex={-1}>Review</h1>
        <ButtonLink href={toScores}>Scores</ButtonLink>
        <Button icon="plus" onClick={() => setOpened({ what: "new" })}>
          New queue
        </Button>
      </header>
      {hasNoScore && (
        <p className={style["note"]}>
          {project} has no score that people give. <a href={toScores}>Create one</a>, so that there is something to answer.
        </p>
      )}
      <Loaded
        reading={readingOf(query)}
        skeleton={<Skeleton lines={LINES} />}
        onSignIn={() => void askToSignIn().then(() => query.refetch())}
      >
        {(saved) => (
          <ul className={style["rows"]} aria-label="Queues">
            {[...builtInQueues(userId), ...saved.map(savedQueue)].map((queue) => (
              <Row key={queue.id} queue={queue} props={props} onOpened={setOpened} />
            ))}
          </ul>
        )}
      </Loaded>
      {(opened.what === "new" || opened.what === "edit") && (
        <QueueDialog place={place} queue={opened.what === "edit" ? opened.queue : null} FilterBar={parts.FilterBar} onClose={close} />
      )}
      {opened.what === "delete" && <DeleteQueue place={place} queue={opened.queue} onClose={close} />}
    </>
  );
}
