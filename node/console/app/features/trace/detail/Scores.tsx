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

/** The scores that each reviewer gave in a review of the span. */
function Reviews({ place, reviews }: { readonly place: SpanPlace; readonly reviews: readonly SpanHead[] }) {
  return reviews.map((review) => (
    <div key={review.id} role="group" aria-label={review.name}>
      <h4 className={style["subheading"]}>
        {review.name} <Author organization={place.organization} userId="" source="" at={parseMoment(review.created)} />
      </h4>
      <dl className={style["pairs"]}>
        {review.scores.map(([name, value]) => (
          <Pair key={name} name={name}>
            {score(value)}
          </Pair>
        ))}
      </dl>
    </div>
  ));
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
