// The difference between the span and what was expected of it, or between it and another span of the trace.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemOf } from "../../../lib/errors";
import type { Fields } from "../../../api/narrow";
import type { SpanHead, SpanPlace } from "../../../api/spans";
import { Diff } from "../../../design/Diff";
import { ErrorState } from "../../../design/ErrorState";
import { Skeleton } from "../../../design/Skeleton";
import { asText } from "../../../lib/json";
import { clock } from "../../../lib/time";
import { preferences } from "../../../lib/preferences";
import { spanQuery } from "../queries";
import { isThere, titleOf } from "./Contents";
import style from "./Detail.module.css";
import { Section } from "./Section";

const LINES = [[90], [70]] as const;

const text = (value: unknown): string => (isThere(value) ? asText(value) : "");

function Both({ before, after, names }: { readonly before: Fields; readonly after: Fields; readonly names: readonly string[] }) {
  return names
    .filter((name) => isThere(before[name]) || isThere(after[name]))
    .map((name) => (
      <Section key={name} title={titleOf(name)}>
        <Diff before={text(before[name])} after={text(after[name])} />
      </Section>
    ));
}

function Other({ place, row, id }: { readonly place: SpanPlace; readonly row: Fields; readonly id: string }) {
  const reading = useQuery(spanQuery(place, id));
  if (reading.isPending || reading.isPlaceholderData) return <Skeleton lines={LINES} />;
  if (reading.isError) {
    return <ErrorState problem={problemOf(reading.error, Date.now())} onRetry={() => void reading.refetch()} onSignIn={() => undefined} />;
  }
  if (reading.data === null) return <p className={style["empty"]}>The other span is gone.</p>;
  return <Both before={reading.data} after={row} names={["input", "output", "error", "metadata"]} />;
}

interface DifferenceProps {
  readonly place: SpanPlace;
  readonly row: Fields;
  readonly others: readonly SpanHead[];
}

export function Difference({ place, row, others }: DifferenceProps) {
  const hasExpected = isThere(row["expected"]);
  const [chosen, setChosen] = useState("");
  const other = others.find((span) => span.id === chosen) ?? (hasExpected ? undefined : others[0]);
  if (!hasExpected && other === undefined) {
    return <p className={style["empty"]}>There is nothing to compare with: no expected output, and no other span.</p>;
  }
  const nameOf = (span: SpanHead): string =>
    span.start === null ? span.name : `${span.name}, ${clock(new Date(span.start * 1000), preferences.value.zone)}`;
  return (
    <>
      <label className={style["compare"]}>
        Compare with
        <select value={other?.id ?? ""} onChange={(event) => setChosen(event.currentTarget.value)}>
          {hasExpected && <option value="">Expected output</option>}
          {others.map((span) => (
            <option key={span.id} value={span.id}>
              {nameOf(span)}
            </option>
          ))}
        </select>
      </label>
      {other === undefined ? (
        <Section title="From the expected output to the output">
          <Diff before={text(row["expected"])} after={text(row["output"])} />
        </Section>
      ) : (
        <Other key={other.id} place={place} row={row} id={other.id} />
      )}
    </>
  );
}
