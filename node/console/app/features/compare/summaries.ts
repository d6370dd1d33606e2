// What a comparison says of the experiments as wholes.
import type { Change, Compared, ComparedExperiment, Comparison, MetricSummary } from "../../api/comparison";
import { measuresOf, type Measure } from "./measures";

const METRIC = "metrics.";

const metricOf = ({ metrics }: ComparedExperiment, { name }: Measure): MetricSummary | undefined =>
  metrics[name.slice(METRIC.length)];

const isMetric = ({ name }: Measure): boolean => name.startsWith(METRIC);

export function meanOf(experiment: ComparedExperiment, measure: Measure): number | null {
  if (isMetric(measure)) return metricOf(experiment, measure)?.mean ?? null;
  return experiment.scores[measure.name]?.mean ?? null;
}

export const percentileOf = (experiment: ComparedExperiment, measure: Measure): number | null =>
  isMetric(measure) ? (metricOf(experiment, measure)?.p95 ?? null) : null;

export const deviationOf = (experiment: ComparedExperiment, measure: Measure): number | null =>
  isMetric(measure) ? null : (experiment.scores[measure.name]?.deviation ?? null);

/** The change of a measure; null if no pair has it on both sides. */
export function changeOf(comparison: Comparison, measure: Measure): Change | null {
  const found = isMetric(measure) ? comparison.metrics[measure.name.slice(METRIC.length)] : comparison.scores[measure.name];
  return found === undefined || found.pairs === 0 ? null : found;
}

/** All measures of a comparison that any of its experiments has, without metrics that are 0 everywhere. */
export const measuresIn = ({ experiments }: Pick<Compared, "experiments">): readonly Measure[] =>
  measuresOf(
    experiments.flatMap(({ scores }) => Object.keys(scores)),
    experiments.flatMap(({ metrics }) =>
      Object.entries(metrics).flatMap(([name, { count, mean }]) => (count > 0 && mean !== 0 ? [name] : [])),
    ),
  );

/** The experiments as columns show them: the base, then the one looked at, then the others. */
export function inColumns({ experiments, base }: Compared): readonly ComparedExperiment[] {
  const first = experiments.filter(({ id }) => id === base);
  return [...first, ...experiments.filter(({ id }) => id !== base)];
}

/** The comparison of the experiment that is looked at with the base; null without a base. */
export const mainComparison = ({ comparisons, experiments }: Compared): Comparison | null =>
  comparisons.find(({ experiment }) => experiment === experiments[0]?.id) ?? null;
