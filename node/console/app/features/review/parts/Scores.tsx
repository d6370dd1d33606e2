// The scores that people of the project give: their list and order, and the project's settings about reviews.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useMemo, useState } from "react";
import { problemOf } from "../../../lib/errors";
import { askToSignIn } from "../../../api/gate";
import { cache, readingOf } from "../../../api/queries";
import { changeReviewSetting, deleteScore, placeScore, type ReviewSetting, type ReviewSettings, type Score } from "../../../api/reviewScores";
import { Button, IconButton } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { toast } from "../../../design/Toast";
import { useCommands } from "../../../lib/commands";
import { announce } from "../../../lib/store";
import { score as scoreText } from "../../../lib/numbers";
import { scoresQuery, settingsQuery, type Place } from "../queries";
import { moved } from "../rank";
import { isConditional, ordered } from "../scores";
import style from "../screen.module.css";
import { writeReviewState, type ReviewState } from "../url";
import { Check } from "./Check";
import { ScoreDialog, TYPE_NAMES } from "./ScoreDialog";

const LINES = Array.from({ length: 4 }, () => [20, 12, 24]);

const SETTINGS: readonly (readonly [name: ReviewSetting, label: string])[] = [
  ["blind_reviews", "Blind reviews: others’ values are hidden until one’s own are sent"],
  ["require_all_human_review_scores", "A row is done when everybody it is assigned to has given all scores"],
];

interface ScoresProps {
  readonly state: ReviewState;
  readonly place: Place;
}

function Settings({ place }: { readonly place: Place }) {
  const query = useQuery(settingsQuery(place));
  const { queryKey } = settingsQuery(place);
  const change = async (name: ReviewSetting, isOn: boolean): Promise<void> => {
    const before = cache.getQueryData(queryKey);
    cache.setQueryData(queryKey, (known: ReviewSettings | undefined) => (known === undefined ? known : { ...known, [name]: isOn }));
    try {
      cache.setQueryData(queryKey, await changeReviewSetting(place.organization, place.projectId, name, isOn));
    } catch (error) {
      cache.setQueryData(queryKey, before);
      toast(`The setting was not changed: ${problemOf(error, 0).text}`, true);
    }
  };
  return (
    <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={SETTINGS.map(() => [56])} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(settings) => (
        <div className={style["settings"]} role="group" aria-label="Settings of the project">
          {SETTINGS.map(([name, label]) => (
            <Check key={name} label={label} isOn={settings[name]} onChange={(isOn) => void change(name, isOn)} />
          ))}
        </div>
      )}
    </Loaded>
  );
}

/** What a score asks for, in a line. No name turns the direction of what follows it. */
function Summary({ score: { type, categories, destination } }: { readonly score: Score }) {
  if (type === "slider") return "0 to 1";
  const hasValues = type !== "minimum" && type !== "maximum" && destination !== "expected";
  return categories.map(({ name, value }, index) => (
    <Fragment key={index}>
      {index > 0 && ", "}
      <bdi>{name}</bdi>
      {hasValues && ` ${scoreText(value)}`}
    </Fragment>
  ));
}

type Opened = { readonly what: "none" | "new" } | { readonly what: "edit" | "delete"; readonly score: Score };

interface RowProps {
  readonly score: Score;
  readonly index: number;
  readonly count: number;
  readonly onMove: (by: 1 | -1) => void;
  readonly onOpened: (opened: Opened) => void;
}

function Row({ score, index, count, onMove, onOpened }: RowProps) {
  const { name, users, groups, destination, kinds } = score;
  const marks = [
    users.length + groups.length > 0 ? "For some people" : "",
    isConditional(score) ? "Hidden under conditions" : "",
    destination === "" ? "" : `To ${destination}`,
    kinds.length === 0 ? "" : `Only ${kinds.map((kind) => (kind === "project_logs" ? "logs" : `${kind}s`)).join(", ")}`,
  ];
  return (
    <li className={style["row"]}>
      <button type="button" className={style["name"]} onClick={() => onOpened({ what: "edit", score })}>
        {name}
      </button>
      <span className={style["mark"]}>{TYPE_NAMES[score.type]}</span>
      <span className={style["filter"]}>
        <Summary score={score} />
        {marks.filter((word) => word !== "").map((word) => ` · ${word}`)}
      </span>
      <span className={style["moves"]}>
        <IconButton icon="up" label={`Move ${name} up`} disabled={index === 0} onClick={() => onMove(-1)} />
        <IconButton icon="down" label={`Move ${name} down`} disabled={index === count - 1} onClick={() => onMove(1)} />
        <IconButton icon="close" label={`Delete ${name}`} onClick={() => onOpened({ what: "delete", score })} />
      </span>
    </li>
  );
}

/** Moves a score to another place among the others. */
async function move(place: Place, scores: readonly Score[], from: number, to: number): Promise<void> {
  const { queryKey } = scoresQuery(place);
  const before = cache.getQueryData(queryKey);
  const changes = moved(scores, from, to);
  const positions = new Map(changes.map(({ id, position }) => [id, position]));
  cache.setQueryData(queryKey, scores.map((score) => ({ ...score, position: positions.get(score.id) ?? score.position })));
  try {
    const kept = await Promise.all(changes.map(({ id, position }) => placeScore(place.organization, id, position)));
    if (!kept.every((one) => one)) throw new Error("This version of the server does not keep the order of scores.");
    announce(`${scores[from]?.name ?? ""} is number ${to + 1} of ${scores.length}`);
  } catch (error) {
    cache.setQueryData(queryKey, before);
    toast(`The score was not moved. ${problemOf(error, 0).text}`, true);
  }
}

function DeleteScore({ place, score, onClose }: { readonly place: Place; readonly score: Score; readonly onClose: () => void }) {
  return (
    <FormDialog
      title={`Delete the score ${score.name}?`}
      action="Delete"
      onClose={onClose}
      onSubmit={async () => {
        await deleteScore(place.organization, score.id);
        await cache.invalidateQueries({ queryKey: scoresQuery(place).queryKey });
        toast(`The score ${score.name} is deleted.`);
        return null;
      }}
    >
      <p>Values that were given stay in their rows. Nobody is asked for the score any more.</p>
    </FormDialog>
  );
}

export function Scores({ state, place }: ScoresProps) {
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const query = useQuery(scoresQuery(place));
  const scores = useMemo(() => ordered(query.data ?? []), [query.data]);
  const commands = useMemo(
    () => [{ id: "review.score", title: "New score", group: "Review", keys: "n", run: () => setOpened({ what: "new" }) }],
    [],
  );
  useCommands(commands);
  const create = (): void => setOpened({ what: "new" });
  const close = (): void => setOpened({ what: "none" });
  return (
    <>
      <header className={style["head"]}>
        <a className={style["up"]} href={writeReviewState({ organization: state.organization, project: state.project, at: "queues" })}>
          Review
        </a>
        <span aria-hidden="true">/</span>
        <h1 tabIndex={-1}>Scores</h1>
        <Button icon="plus" onClick={create}>
          New score
        </Button>
      </header>
      <Settings place={place} />
      <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {() =>
          scores.length === 0 ? (
            <Empty action={<Button look="primary" onClick={create}>Create a score</Button>}>
              {state.project} has no score that people give. A score is a slider, a choice of options, or a text.
            </Empty>
          ) : (
            <ol className={style["rows"]} aria-label="Scores">
              {scores.map((score, index) => (
                <Row
                  key={score.id}
                  {...{ score, index }}
                  count={scores.length}
                  onMove={(by) => void move(place, scores, index, index + by)}
                  onOpened={setOpened}
                />
              ))}
            </ol>
          )
        }
      </Loaded>
      {(opened.what === "new" || opened.what === "edit") && (
        <ScoreDialog place={place} score={opened.what === "edit" ? opened.score : null} scores={scores} onClose={close} />
      )}
      {opened.what === "delete" && <DeleteScore place={place} score={opened.score} onClose={close} />}
    </>
  );
}
