// What was written to a span since it is there: each write with its author, and what it changed.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { EVENTS_MAX } from "../../../api/history";
import { problemOf } from "../../../lib/errors";
import type { Fields } from "../../../api/narrow";
import type { SpanPlace } from "../../../api/spans";
import { Button } from "../../../design/Button";
import { Diff } from "../../../design/Diff";
import { ErrorState } from "../../../design/ErrorState";
import { Skeleton } from "../../../design/Skeleton";
import { asText } from "../../../lib/json";
import { momentOf } from "../../../lib/version";
import { Author } from "./Author";
import style from "./Detail.module.css";
import { actionWords, commentsOf, historyOf, type Change, type HistoryEntry } from "./changes";
import { historyQuery } from "./queries";
import { Section } from "./Section";

const LINES = [[60], [40]] as const;

/** Texts up to this length stand in a line as they are. */
const SHORT = 60;

const isAbsent = (value: unknown): boolean => value === null || value === undefined;

function Changed({ change: { field, before, after } }: { readonly change: Change }) {
  const [from, to] = [isAbsent(before) ? "" : asText(before), isAbsent(after) ? "" : asText(after)];
  const isShort = from.length <= SHORT && to.length <= SHORT && !`${from}${to}`.includes("\n");
  if (isShort) {
    return (
      <li>
        <code>{field}</code> {from !== "" && <del>{from}</del>} {from !== "" && to !== "" && "to"} {to === "" ? "removed" : <ins>{to}</ins>}
      </li>
    );
  }
  if (from === "") return <li><code>{field}</code> set</li>;
  return (
    <li>
      <details>
        <summary>
          <code>{field}</code> changed
        </summary>
        <Diff before={from} after={to} />
      </details>
    </li>
  );
}

function Entry({ organization, entry: { event, changes } }: { readonly organization: string; readonly entry: HistoryEntry }) {
  return (
    <li className={style["event"]}>
      <div>
        {actionWords(event.action)}{" "}
        <Author organization={organization} userId={event.userId} source={event.source} at={momentOf(event.transaction)} />
      </div>
      {changes.length > 0 && (
        <ul className={style["changes"]}>
          {changes.map((change) => (
            <Changed key={change.field} change={change} />
          ))}
        </ul>
      )}
    </li>
  );
}

interface HistoryProps {
  readonly place: SpanPlace;
  readonly row: Fields;
  readonly id: string;
}

function Entries({ place, row, id }: HistoryProps) {
  const reading = useQuery(historyQuery(place, id));
  const entries = useMemo(() => historyOf(reading.data ?? [], commentsOf(row)), [reading.data, row]);
  if (reading.isPending) return <Skeleton lines={LINES} />;
  if (reading.isError) {
    return <ErrorState problem={problemOf(reading.error, Date.now())} onRetry={() => void reading.refetch()} onSignIn={() => undefined} />;
  }
  if (entries.length === 0) return <p className={style["none"]}>No writes are kept</p>;
  return (
    <>
      <ol className={style["history"]} aria-label="Writes to the span, the newest first">
        {entries.map((entry, index) => (
          <Entry key={`${entry.event.transaction} ${index}`} organization={place.organization} entry={entry} />
        ))}
      </ol>
      {reading.data.length === EVENTS_MAX && <p className={style["none"]}>These are the newest {EVENTS_MAX} writes.</p>}
    </>
  );
}

export function History(props: HistoryProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Section
      title="History"
      aside={
        <Button look="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide" : "Show"}
        </Button>
      }
    >
      {isOpen && <Entries {...props} />}
    </Section>
  );
}
