// Why the list is empty, and the ways out.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button, ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { useLinks } from "../../../lib/links";
import { rangeWords } from "../../../lib/range";
import { now, parseMoment } from "../../../lib/time";
import { exactCount } from "../../../lib/numbers";
import { countQuery, newestQuery } from "../laterQueries";
import type { LogsRequest } from "../request";
import type { LogsState } from "../url";
import { rangeAround, widerRange, withoutLast } from "../filtering";

export interface NoRowsProps {
  readonly state: LogsState;
  readonly projectId: string;
  readonly request: LogsRequest;
  readonly change: (changed: Partial<LogsState>) => void;
  /** Narrows the list by one more expression. */
  readonly addFilter: (expression: string) => void;
}

/** How old something is, in the words of a sentence. */
function ageOf(milliseconds: number): string {
  const units: readonly (readonly [number, string])[] = [
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
  ];
  for (const [size, name] of units) {
    const count = Math.floor(milliseconds / size);
    if (count >= 1) return `${count} ${name}${count === 1 ? "" : "s"} old`;
  }
  return "less than a minute old";
}

export function NoRows({ state, request, projectId, change }: NoRowsProps) {
  const links = useLinks();
  const newest = useQuery(newestQuery(state.organization, projectId));
  const noun = state.shape === "traces" ? "trace" : "span";
  if (newest.isPending) return <p aria-busy="true" />;
  const moment = parseMoment(newest.data ?? null);
  if (moment === null) {
    return (
      <Empty action={<ButtonLink look="primary" href={links.welcome(state.organization, state.project)}>Show how to send traces</ButtonLink>}>
        This project has no {noun} yet.
      </Empty>
    );
  }
  const widen = (range: string) => (
    <Button onClick={() => change({ range })}>
      {range === "all" ? "Show all time" : `Show the ${rangeWords(range, "utc").toLowerCase()}`}
    </Button>
  );
  if (state.filter.trim() === "") {
    return (
      <Empty action={widen(rangeAround(moment.getTime(), now.value))}>
        There is no {noun} in this range. The newest is {ageOf(now.value - moment.getTime())}.
      </Empty>
    );
  }
  return <NothingFits {...{ state, request, change, widen }} noun={noun} />;
}

interface NothingFitsProps extends Pick<NoRowsProps, "state" | "request" | "change"> {
  readonly noun: string;
  readonly widen: (range: string) => ReactNode;
}

/** What to do about a filter that finds nothing: leave out its last condition, all of it, or look further back. */
function NothingFits({ state, request, change, noun, widen }: NothingFitsProps) {
  const shorter = withoutLast(state.filter);
  const isPart = shorter !== null && shorter !== "";
  const without = useQuery({
    ...countQuery(state.organization, { ...request, filter: shorter ?? "" }),
    enabled: isPart,
  });
  const wider = widerRange(state.range);
  return (
    <Empty
      action={
        <>
          {isPart && without.data !== undefined && without.data > 0 && (
            <Button look="primary" onClick={() => change({ filter: shorter })}>
              {exactCount(without.data)} without the last condition
            </Button>
          )}
          <Button onClick={() => change({ filter: "" })}>Clear the filter</Button>
          {wider !== null && widen(wider)}
        </>
      }
    >
      No {noun} in this range fulfils the filter.
    </Empty>
  );
}
