// The facets in their order, and which of them are shown as values and which as a distribution.
import { path as pathText, ranked, type KnownField, type Step } from "../../../btql";
import { fieldKey, mergedFields } from "../filter/fields";

export interface Facet {
  readonly key: string;
  readonly title: string;
  /** The column that the title leaves out, for what is read aloud. */
  readonly name: string;
  readonly kind: "values" | "numbers" | "errors";
  readonly field: KnownField;
}

export interface Section {
  readonly title: string;
  readonly facets: readonly Facet[];
}

export const ERRORS_KEY = "errors";

/** Numbers with so few values are counted one by one. */
const FEW_VALUES = 8;

const isNumbers = ({ path, type, values }: KnownField): boolean =>
  type === "number" && (path[0] === "scores" || path[0] === "metrics" || values.length > FEW_VALUES);

/** The keys below the column, which the heading of the section names. */
const lastOf = (path: readonly Step[]): string => path.slice(path.length === 1 ? 0 : 1).join(".");

const facetOf = (field: KnownField, title = lastOf(field.path)): Facet => ({
  key: fieldKey(field.path),
  title,
  name: pathText(field.path),
  kind: isNumbers(field) ? "numbers" : "values",
  field,
});

const ERRORS: Facet = {
  key: ERRORS_KEY,
  title: "Errors",
  name: "errors",
  kind: "errors",
  field: { path: ["error"], type: "object", values: [] },
};

/** Fields that most rows have, with their titles. */
const FIRST = { type: "Type", name: "Name", model: "Model", tags: "Tags" } as const;
const METRICS = ["duration", "total_tokens", "estimated_cost", "time_to_first_token"] as const;

/** Metrics that are moments or parts of others, and say nothing by themselves. */
const isDull = ({ path }: KnownField): boolean => path[0] === "metrics" && (path[1] === "start" || path[1] === "end");

const isCountable = ({ type }: KnownField): boolean => type === "string" || type === "number" || type === "boolean" || type === "array";

const inColumn = (fields: readonly KnownField[], column: string): readonly Facet[] =>
  fields.filter(({ path }) => path[0] === column && path.length > 1).map((field) => facetOf(field));

const titled = (title: string, facets: readonly Facet[]): readonly Section[] =>
  facets.length === 0 ? [] : [{ title, facets }];

/** The facets of some fields, those of every row first. */
export function sectionsOf(found: readonly KnownField[], sought: string): readonly Section[] {
  const fields = mergedFields(found).filter((field) => isCountable(field) && !isDull(field));
  const byName = (name: string): KnownField | undefined =>
    fields.find(({ path }) => path.at(-1) === name && ["span_attributes", "metadata", "tags"].includes(String(path[0])));
  const first = Object.entries(FIRST).flatMap(([name, title]) => {
    const field = byName(name);
    return field === undefined ? [] : [facetOf(field, title)];
  });
  const isFirst = new Set(first.map(({ key }) => key));
  const rest = found.filter((field) => isCountable(field) && !isDull(field) && !isFirst.has(fieldKey(field.path)));
  const metrics = fields.filter(({ path }) => path[0] === "metrics" && METRICS.some((name) => name === path[1]));
  const others = rest.filter(({ path }) => path[0] === "metrics" && !METRICS.some((name) => name === path[1]));
  const sections = [
    ...titled("", [ERRORS, ...first]),
    ...titled("Metadata", inColumn(rest, "metadata")),
    ...titled("Scores", inColumn(rest, "scores")),
    ...titled("Attributes", inColumn(rest, "span_attributes")),
    ...titled("Metrics", [...metrics, ...others].map((field) => facetOf(field))),
  ];
  if (sought.trim() === "") return sections;
  return sections.flatMap(({ title, facets }) => titled(title, ranked(facets, sought.trim(), (facet) => facet.name)));
}

/** Numbers that differ by less are alike. */
const SMALLEST_STEP = 1e-12;

/** A step between round numbers, of which no more than `most` lie between two numbers. */
export function roundStep(low: number, high: number, most: number): number {
  const wanted = (high - low) / most;
  if (!(wanted > SMALLEST_STEP) || !Number.isFinite(wanted)) return 1;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].find((factor) => Math.floor(high / (factor * power)) - Math.floor(low / (factor * power)) < most) ?? 20;
  return Number((step * power).toPrecision(12));
}

/** The lower edge of a step, without the noise of binary fractions. */
export const edgeOf = (index: number, step: number): number => Number((index * step).toPrecision(12));
