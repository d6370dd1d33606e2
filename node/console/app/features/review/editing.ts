// A score as somebody edits it, and the record that is kept.
import type { Category, Clauses, Score, ScoreRecord } from "../../api/reviewScores";

export interface EditedCategory {
  readonly name: string;
  /** The value as it was typed. */
  readonly value: string;
}

export interface EditedScore extends Pick<Score, "name" | "description" | "type" | "destination" | "isMultiple" | "users" | "groups" | "kinds"> {
  readonly categories: readonly EditedCategory[];
  /** The expressions of each kind of condition, one in a line. */
  readonly clauses: Readonly<Record<keyof Clauses, string>>;
}

export const NEW_SCORE: EditedScore = {
  name: "",
  description: "",
  type: "slider",
  destination: "",
  isMultiple: false,
  users: [],
  groups: [],
  kinds: [],
  categories: [
    { name: "", value: "1" },
    { name: "", value: "0" },
  ],
  clauses: { row: "", below: "", trace: "" },
};

const lines = (clauses: readonly string[]): string => clauses.map((clause) => clause.replaceAll(/\s*[\r\n]+\s*/g, " ")).join("\n");

/** The expressions of a text, one in each line. */
export const clausesOf = (text: string): readonly string[] => text.split("\n").map((line) => line.trim()).filter((line) => line !== "");

export function editedOf(score: Score): EditedScore {
  const { row, below, trace } = score.clauses;
  return {
    ...score,
    categories: score.categories.map(({ name, value }) => ({ name, value: String(value) })),
    clauses: { row: lines(row), below: lines(below), trace: lines(trace) },
  };
}

/** The kinds of scores that have a list of names, and whether each has a number. */
export const hasCategories = (type: Score["type"]): boolean => type !== "slider" && type !== "free-form";
export const hasValues = (type: Score["type"]): boolean => type === "categorical" || type === "weighted";

/** The categories that were entered: lines without a name are left out. */
const categoriesOf = ({ categories }: EditedScore): readonly Category[] =>
  categories.flatMap(({ name, value }) => (name.trim() === "" ? [] : [{ name: name.trim(), value: Number(value.trim() === "" ? Number.NaN : value) }]));

/** What is wrong with a score, in a sentence; null if nothing is. */
export function faultIn(edited: EditedScore, taken: readonly string[]): string | null {
  const { type } = edited;
  const name = edited.name.trim();
  if (name === "") return "Enter a name first.";
  if (taken.includes(name)) return `There is a score ${name} already.`;
  if (!hasCategories(type)) return null;
  const categories = categoriesOf(edited);
  if (categories.length === 0) return type === "categorical" ? "Enter an option first." : "Enter a score first.";
  if (new Set(categories.map((one) => one.name)).size < categories.length) return "Each name may stand there once.";
  const isGood = ({ value }: Category): boolean => value >= 0 && (type === "weighted" ? Number.isFinite(value) : value <= 1);
  if (hasValues(type) && !categories.every(isGood)) {
    return type === "weighted" ? "Each weight is a number from 0 on." : "Each value is a number from 0 to 1.";
  }
  return null;
}

/** The categories in the form that a type of score has. */
function keptCategories(edited: EditedScore): unknown {
  const categories = categoriesOf(edited);
  switch (edited.type) {
    case "categorical":
      return categories;
    case "weighted":
      return Object.fromEntries(categories.map(({ name, value }) => [name, value]));
    case "minimum":
    case "maximum":
      return categories.map(({ name }) => name);
    default:
      return null;
  }
}

/** The record of a score. What its configuration has besides stays. */
export function recordOf(edited: EditedScore, before: Score | null): ScoreRecord {
  const { type, destination, isMultiple, users, groups, kinds } = edited;
  const [row, below, trace] = [clausesOf(edited.clauses.row), clausesOf(edited.clauses.below), clausesOf(edited.clauses.trace)];
  const when = { clauses: row, subspan_clauses: below, trace_clauses: trace };
  const isConditional = row.length + below.length + trace.length > 0;
  const hasTarget = type === "categorical" || type === "free-form";
  return {
    name: edited.name.trim(),
    description: edited.description.trim() === "" ? null : edited.description.trim(),
    score_type: type,
    categories: keptCategories(edited),
    config: {
      ...before?.config,
      destination: hasTarget && destination.trim() !== "" ? destination.trim() : null,
      multi_select: type === "categorical" && isMultiple && destination === "expected",
      visibility: users.length + groups.length === 0 ? null : { users, groups },
      condition: isConditional ? { when, behavior: "hidden" } : null,
      object_types: kinds.length === 0 ? null : kinds,
    },
  };
}
