// The statistics of the compared experiments, each against the base.
import { useQueries } from "@tanstack/react-query";
import type { Experiment } from "../../api/experiments";
import { isAbort, problemOf } from "../../lib/errors";
import type { Problem } from "../../lib/problem";
import { useLatest } from "../../lib/commands";
import { judged, type Found, type Judge } from "./judgements";
import { statisticsQuery } from "./queries";
import type { CompareState } from "./url";

export interface Judging {
  readonly judge: Judge;
  readonly problem: Problem | null;
  readonly again: () => void;
}

/**
 * Reads statistics of whole experiments as they are now. They say nothing about filtered rows or an earlier state, so
 * that they are not read for these. `isOld` says that the comparison on the page belongs to another request.
 */
export function useStatistics(state: CompareState, experiments: readonly Experiment[], isOld: boolean): Judging {
  const [main, base, ...others] = experiments.map(({ id }) => id);
  const isWhole = state.filter.trim() === "" && state.version === "";
  const ids = isWhole && main !== undefined ? [main, ...others] : [];
  const reads = useQueries({ queries: ids.map((id) => statisticsQuery(state.organization, id, base ?? null)) });
  const failed = reads.find(({ error }) => error !== null && !isAbort(error));
  const foundOf = (experiment: string, name: string): Found => {
    if (isOld) return "reading";
    const read = reads[ids.indexOf(experiment)];
    return read?.isLoading === true ? "reading" : (read?.data?.get(name) ?? null);
  };
  return {
    judge: (experiment, measure, change) => judged(measure, change, foundOf(experiment, measure.name)),
    problem: failed === undefined ? null : problemOf(failed.error, failed.errorUpdatedAt),
    again: useLatest(() => {
      for (const read of reads) if (read.error !== null) void read.refetch();
    }),
  };
}
