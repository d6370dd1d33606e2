// Makes a playground of a span of a model, and leads on to it.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { problemOf } from "../../../lib/errors";
import { askToSignIn } from "../../../api/gate";
import type { Fields } from "../../../api/narrow";
import { makePlayground, readPlayground, readPlaygrounds } from "../../../api/playground";
import { readingOf } from "../../../api/queries";
import { ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { ErrorState } from "../../../design/ErrorState";
import { Loaded } from "../../../design/Loaded";
import { SCREEN_SKELETON } from "../../../design/ScreenSkeleton";
import type { Problem } from "../../../lib/problem";
import { asText } from "../../../lib/json";
import { navigate } from "../../../lib/router";
import { forgetPlaygrounds, spanQuery, type Place } from "../queries";
import { replayOf, type Replay as Made } from "../replay";
import { playgroundDefaults, writePlace, type PlaygroundState } from "../url";
import { freeOf, withPrompt } from "../variants";

async function make(place: Place, made: Made): Promise<string> {
  const { organization, projectId } = place;
  const taken = (await readPlaygrounds(organization, projectId)).map(({ name }) => name);
  const start = withPrompt(readPlayground(null), made);
  const input = made.input === null ? "" : asText(made.input);
  const playground = { ...start, rows: { kind: "input", input, expected: "" } as const };
  const record = await makePlayground(organization, projectId, freeOf(taken, `Replay of ${made.name}`), playground);
  await forgetPlaygrounds(place);
  return writePlace({ ...playgroundDefaults(organization, place.project, record.id), variant: record.playground.variants[0]?.id ?? "" });
}

interface MakingProps {
  readonly place: Place;
  readonly row: Fields;
  readonly back: string;
}

function Making({ place, row, back }: MakingProps) {
  const made = useRef(replayOf(row)).current;
  const [problem, setProblem] = useState<Problem | null>(null);
  const begin = (): void => {
    if (made === null) return;
    setProblem(null);
    make(place, made).then(
      (href) => navigate(href, "replace"),
      (error: unknown) => setProblem(problemOf(error, Date.now())),
    );
  };
  useEffect(begin, []);
  if (made === null) {
    return <Empty action={<ButtonLink href={back}>Show the playgrounds</ButtonLink>}>The span has no messages of a model, so that it cannot be asked again.</Empty>;
  }
  if (problem !== null) return <ErrorState problem={problem} onRetry={begin} onSignIn={() => void askToSignIn().then(begin)} />;
  return <Empty>Making a playground of the span…</Empty>;
}

export function Replay({ place, state }: { readonly place: Place; readonly state: PlaygroundState }) {
  const query = useQuery(spanQuery(place, state));
  const back = writePlace(playgroundDefaults(place.organization, place.project));
  return (
    <>
      <h1 className="only-spoken" tabIndex={-1}>
        Playground of a span
      </h1>
      <Loaded reading={readingOf(query)} skeleton={SCREEN_SKELETON} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(row) =>
          row === null ? (
            <Empty action={<ButtonLink href={back}>Show the playgrounds</ButtonLink>}>The span does not exist, or you cannot see it.</Empty>
          ) : (
            <Making {...{ place, row, back }} />
          )
        }
      </Loaded>
    </>
  );
}
