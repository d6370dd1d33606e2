// What somebody answers in the form, and how it stands in a review.
import type { Given, ReviewBody } from "../../api/review";
import type { Score } from "../../api/reviewScores";
import { isRecord } from "../../api/narrow";

/** A number of a slider or an option, the name of an option, several names, or a text. */
export type Answer = number | string | readonly string[];

/** The answers by the ids of the scores. One that was not given is absent. */
export type Answers = ReadonlyMap<string, Answer>;

const EXPECTED = "expected";

/** Where the answer to a score stands. */
export type Target = { readonly in: "scores" } | { readonly in: "expected" } | { readonly in: "metadata"; readonly path: readonly string[] };

export function targetOf({ type, destination, name }: Score): Target {
  if (type !== "slider" && destination === EXPECTED) return { in: "expected" };
  if (type !== "free-form") return { in: "scores" };
  return { in: "metadata", path: (destination === "" ? name : destination.replace(/^metadata\./, "")).split(".") };
}

export const isEmpty = (answer: Answer | undefined): boolean =>
  answer === undefined || (typeof answer !== "number" && answer.length === 0);

/** The scores that have no answer. */
export const missing = (scores: readonly Score[], answers: Answers): readonly Score[] =>
  scores.filter(({ id }) => isEmpty(answers.get(id)));

export function withAnswer(answers: Answers, id: string, answer: Answer | null): Answers {
  const changed = new Map(answers);
  if (answer === null) changed.delete(id);
  else changed.set(id, answer);
  return changed;
}

const DIGITS = 9;

/**
 * The answer that a digit stands for, from 1 to 9: an option, or a part of a slider from 0 to 1. The digit of the given
 * answer takes it away, which is null. Undefined means that the digit stands for nothing.
 */
export function picked(score: Score, answer: Answer | undefined, digit: number): Answer | null | undefined {
  if (score.type === "slider") {
    const value = (digit - 1) / (DIGITS - 1);
    return answer === value ? null : value;
  }
  const option = score.type === "categorical" ? score.categories[digit - 1] : undefined;
  return option === undefined ? undefined : chosen(score, answer, option.name);
}

/** The answer after an option was chosen, or chosen again. */
export function chosen(score: Score, answer: Answer | undefined, name: string): Answer | null {
  if (isSeveral(score)) {
    const names = typeof answer === "object" ? answer : [];
    const others = names.filter((one) => one !== name);
    return others.length < names.length ? (others.length === 0 ? null : others) : [...names, name];
  }
  const value = targetOf(score).in === "expected" ? name : (score.categories.find((one) => one.name === name)?.value ?? null);
  return answer === value ? null : value;
}

/** Whether a score has room for several options. */
export const isSeveral = (score: Score): boolean =>
  score.type === "categorical" && score.isMultiple && targetOf(score).in === "expected";

/** Whether an option is part of an answer. */
export function isChosen(answer: Answer | undefined, option: { readonly name: string; readonly value: number }): boolean {
  if (typeof answer === "object") return answer.includes(option.name);
  return answer === option.name || answer === option.value;
}

const toExpected = (scores: readonly Score[]): readonly Score[] => scores.filter((score) => targetOf(score).in === "expected");

function valueIn(given: Given, score: Score, isOnly: boolean): unknown {
  const target = targetOf(score);
  if (target.in === "scores") return given.scores[score.name];
  if (target.in === "expected") {
    const { expected } = given;
    return isOnly ? expected : isRecord(expected) ? expected[score.name] : undefined;
  }
  return target.path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), given.metadata);
}

function readAnswer(score: Score, value: unknown): Answer | undefined {
  if (isSeveral(score)) {
    const names = (Array.isArray(value) ? value : [value]).filter((name) => typeof name === "string");
    return names.length === 0 ? undefined : names;
  }
  const isNumber = targetOf(score).in === "scores";
  return (isNumber && typeof value === "number") || (!isNumber && typeof value === "string") ? value : undefined;
}

/** Reads the answers to scores out of a review. */
export function answersOf(scores: readonly Score[], given: Given): Answers {
  const isOnly = toExpected(scores).length === 1;
  const answers = new Map<string, Answer>();
  for (const score of scores) {
    const answer = readAnswer(score, valueIn(given, score, isOnly));
    if (answer !== undefined && !isEmpty(answer)) answers.set(score.id, answer);
  }
  return answers;
}

type Tree = { [key: string]: unknown };

/** Puts a value at a path of an object that is being made. */
function put(tree: Tree, path: readonly string[], value: unknown): void {
  const [key = "", ...rest] = path;
  if (rest.length === 0) {
    Object.defineProperty(tree, key, { value, enumerable: true, configurable: true, writable: true });
    return;
  }
  const below = Object.hasOwn(tree, key) ? tree[key] : undefined;
  const next: Tree = isRecord(below) ? { ...below } : {};
  put(next, rest, value);
  put(tree, [key], next);
}

/** What is expected: the plain answer where one score asks for it, else the answers by the names of the scores. */
function expectedOf(scores: readonly Score[], answers: Answers): unknown {
  const [first, ...others] = scores;
  if (first !== undefined && others.length === 0) return answers.get(first.id) ?? null;
  const named: Tree = {};
  for (const { id, name } of scores) if (!isEmpty(answers.get(id))) put(named, [name], answers.get(id));
  return Object.keys(named).length === 0 ? null : named;
}

/** Writes answers as a review. What was answered before and is no more is taken away; the rest stays as it is. */
export function bodyOf(scores: readonly Score[], answers: Answers, before: Answers): Omit<ReviewBody, "submitted" | "comment"> {
  const isTouched = ({ id }: Score): boolean => !isEmpty(answers.get(id)) || before.has(id);
  const given: Tree = {};
  const texts: Tree = {};
  for (const score of scores.filter(isTouched)) {
    const target = targetOf(score);
    const value = isEmpty(answers.get(score.id)) ? null : answers.get(score.id);
    if (target.in === "scores") put(given, [score.name], value);
    if (target.in === "metadata") put(texts, target.path, value);
  }
  const expecting = toExpected(scores);
  return {
    ...(Object.keys(given).length === 0 ? {} : { scores: given }),
    ...(expecting.some(isTouched) ? { expected: expectedOf(expecting, answers) } : {}),
    ...(Object.keys(texts).length === 0 ? {} : { metadata: texts }),
  };
}
