// The scores of a span: their values with who gave them and when, and fields for those that the project defines.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ScoreDefinition } from "../../../api/history";
import { isRecord, type Fields } from "../../../api/narrow";
import type { SpanHead, SpanPlace } from "../../../api/spans";
import { Button, IconButton } from "../../../design/Button";
import { numeric } from "../../../lib/json";
import { score } from "../../../lib/numbers";
import { parseMoment } from "../../../lib/time";
import { momentOf } from "../../../lib/version";
import { Author } from "./Author";
import style from "./Detail.module.css";
import { scoreEvents } from "./changes";
import { historyQuery, scoreDefinitionsQuery } from "./queries";
import { Pair, Section } from "./Section";
import type { Writing } from "./useWriting";

/** Kinds of defined scores that a person gives as a number. */
const GIVEN: ReadonlySet<string> = new Set(["slider", "categorical"]);

interface GivenProps {
  readonly definition: ScoreDefinition;
  readonly value: number | null;
  readonly onGive: Writing["giveScore"];
}

/** The field of a score that the project defines: its categories, or a number from 0 to 1. */
function Given({ definition: { name, description, categories }, value, onGive }: GivenProps) {
  const commit = (field: HTMLInputElement): void => {
    if (field.value !== "" && field.validity.valid && Number(field.value) !== value) onGive(name, Number(field.value));
  };
  if (categories.length > 0) {
    return (
      <div role="group" aria-label={`Give the score ${name}`} className={style["choices"]} title={description}>
        {categories.map((category) => (
          <Button key={category.name} aria-pressed={value === category.value} onClick={() => onGive(name, category.value)}>
            {category.name}
          </Button>
        ))}
      </div>
    );
  }
  return (
    <input
      type="number"
      className={style["number"]}
      aria-label={`Give the score ${name}`}
      title={description === "" ? "A number from 0 to 1" : description}
      min={0}
      max={1}
      step="any"
      placeholder="0-1"
      defaultValue={value ?? ""}
      key={value}
      onBlur={(event) => commit(event.currentTarget)}
      onKeyDown={(event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        commit(event.currentTarget);
      }}
    />
  );
}

function NewScore({ onGive }: { readonly onGive: Writing["giveScore"] }) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const number = Number(value);
  const isValid = name.trim() !== "" && value.trim() !== "" && number >= 0 && number <= 1;
  return (
    <form
      className={style["line"]}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isValid) return;
        onGive(name.trim(), number);
        setName("");
        setValue("");
      }}
    >
      <input aria-label="Name of another score" placeholder="Another score" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <input
        type="number"
        className={style["number"]}
        aria-label="Value of the other score, from 0 to 1"
        placeholder="0-1"
        min={0}
        max={1}
        step="any"
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
      />
      <Button type="submit" disabled={!isValid}>
        Give
      </Button>
    </form>
  );
}

/** The reviewer in the name that the server gives a review. */
const reviewerIn = (name: string): string => name.replace(/^Review by /, "");

/** The scores that reviewers gave the span, side by side. Those that one may not see are absent. */
function Reviews({ place, reviews }: { readonly place: SpanPlace; readonly reviews: readonly SpanHead[] }) {
  const names = [...new Set(reviews.flatMap((review) => review.scores.map(([name]) => name)))];
  if (reviews.length === 0) return null;
  return (
    <div className={style["reviews"]} role="region" aria-label="Reviews" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Reviewer</th>
            {names.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            <th scope="col">Time</th>
          </tr>
        </thead>
        <tbody>
          {reviews.map((review) => (
            <tr key={review.id}>
              <th scope="row">{reviewerIn(review.name)}</th>
              {names.map((name) => (
                <td key={name}>{score(review.scores.find(([one]) => one === name)?.[1] ?? null)}</td>
              ))}
              <td>
                <Author organization={place.organization} userId="" source="" at={parseMoment(review.created)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface ScoresProps {
  readonly place: SpanPlace;
  readonly projectId: string;
  readonly row: Fields;
  readonly reviews: readonly SpanHead[];
  /** Absent where nothing can be written. */
  readonly writing: Writing | null;
}

export function Scores({ place, projectId, row, reviews, writing }: ScoresProps) {
  const scores = new Map(Object.entries(isRecord(row["scores"]) ? row["scores"] : {}).filter(([, value]) => value !== null));
  const id = typeof row["id"] === "string" ? row["id"] : "";
  const history = useQuery({ ...historyQuery(place, id), enabled: scores.size > 0 });
  const definitions = useQuery({ ...scoreDefinitionsQuery(place.organization, projectId), enabled: writing !== null && projectId !== "" });
  const authors = scoreEvents(history.data ?? []);
  const defined = (definitions.data ?? []).filter((one) => GIVEN.has(one.type));
  const names = [...new Set([...scores.keys(), ...(writing === null ? [] : defined.map((one) => one.name))])];
  return (
    <Section title="Scores">
      {names.length === 0 && <p className={style["none"]}>No scores</p>}
      <dl className={style["pairs"]}>
        {names.map((name) => {
          const value = numeric(scores.get(name));
          const definition = defined.find((one) => one.name === name);
          const event = authors.get(name);
          return (
            <Pair key={name} name={name}>
              <span className={style["score"]}>{score(value)}</span>
              {writing !== null && definition !== undefined && <Given definition={definition} value={value} onGive={writing.giveScore} />}
              {value !== null && event !== undefined && (
                <Author organization={place.organization} userId={event.userId} source={event.source} at={momentOf(event.transaction)} />
              )}
              {writing !== null && value !== null && (
                <IconButton icon="close" label={`Remove the score ${name}`} onClick={() => writing.giveScore(name, null)} />
              )}
            </Pair>
          );
        })}
      </dl>
      <Reviews place={place} reviews={reviews} />
      {writing !== null && <NewScore onGive={writing.giveScore} />}
    </Section>
  );
}
