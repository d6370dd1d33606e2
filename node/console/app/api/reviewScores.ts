// Calls about the scores that people of a project give, and the project's settings about reviews.
import { call } from "./client";
import { flag, isRecord, list, record, text, textOrNull, type Fields } from "./narrow";

export const SCORE_TYPES = ["slider", "categorical", "free-form", "weighted", "minimum", "maximum"] as const;

export type ScoreType = (typeof SCORE_TYPES)[number];

export interface Category {
  readonly name: string;
  readonly value: number;
}

/** The expressions under which a score is hidden: of a row, of other spans of its trace, and of any span of it. */
export interface Clauses {
  readonly row: readonly string[];
  readonly below: readonly string[];
  readonly trace: readonly string[];
}

/** A score that people give, or that is made of others. */
export interface Score {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly type: ScoreType;
  /** The options of a categorical score, the weights of a weighted one, or the scores of a minimum or maximum. */
  readonly categories: readonly Category[];
  /** Where the answer goes; empty for the score of this name. */
  readonly destination: string;
  readonly isMultiple: boolean;
  readonly users: readonly string[];
  readonly groups: readonly string[];
  readonly clauses: Clauses;
  /** The kinds of objects whose rows get it; empty for all. */
  readonly kinds: readonly string[];
  readonly position: string | null;
  readonly created: string;
  /** The configuration as it is kept, with what this page does not know. */
  readonly config: Fields;
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

function readCategories(value: unknown): readonly Category[] {
  const pairs: readonly (readonly [unknown, unknown])[] = Array.isArray(value)
    ? value.map((one) => (isRecord(one) ? [one["name"], one["value"]] : [one, 0]))
    : Object.entries(fieldsOf(value));
  return pairs.flatMap(([name, number]) =>
    typeof name === "string" && typeof number === "number" ? [{ name, value: number }] : [],
  );
}

function readScore(value: unknown): readonly Score[] {
  const score = record(value, "score");
  const type = SCORE_TYPES.find((one) => one === score["score_type"]);
  if (type === undefined) return [];
  const config = fieldsOf(score["config"]);
  const visibility = fieldsOf(config["visibility"]);
  const when = fieldsOf(fieldsOf(config["condition"])["when"]);
  return [
    {
      id: text(score, "id"),
      name: text(score, "name"),
      description: textOrNull(score, "description") ?? "",
      type,
      categories: readCategories(score["categories"]),
      destination: textOrNull(config, "destination") ?? "",
      isMultiple: flag(config, "multi_select"),
      users: textsOf(visibility["users"]),
      groups: textsOf(visibility["groups"]),
      clauses: {
        row: textsOf(when["clauses"]),
        below: textsOf(when["subspan_clauses"]),
        trace: textsOf(when["trace_clauses"]),
      },
      kinds: textsOf(config["object_types"]),
      position: textOrNull(score, "position"),
      created: textOrNull(score, "created") ?? "",
      config,
    },
  ];
}

/** Reads the scores of a project. Those of online scorers are no scores of people, and are left out. */
export async function readScores(organization: string, projectId: string, signal: AbortSignal): Promise<readonly Score[]> {
  const answer = await call("GET", `/v1/project_score?project_id=${projectId}`, { organization, signal });
  return list(record(answer, "scores"), "objects").flatMap(readScore);
}

export type ScoreRecord = Readonly<Record<string, unknown>>;

const SCORES = "/v1/project_score";

/** Makes a score, or changes the one that has an id. */
export async function saveScore(organization: string, id: string | null, body: ScoreRecord): Promise<void> {
  await (id === null
    ? call("POST", SCORES, { organization, body })
    : call("PATCH", `${SCORES}/${id}`, { organization, body }));
}

/** Puts a score at a position. Returns whether the server keeps it. */
export async function placeScore(organization: string, id: string, position: string): Promise<boolean> {
  const answer = record(await call("PATCH", `${SCORES}/${id}`, { organization, body: { position } }), "score");
  return answer["position"] === position;
}

export async function deleteScore(organization: string, id: string): Promise<void> {
  await call("DELETE", `${SCORES}/${id}`, { organization });
}

/** A group of people, which may have groups as members. */
export interface Group {
  readonly id: string;
  readonly name: string;
  readonly users: readonly string[];
  readonly groups: readonly string[];
}

export async function readGroups(organization: string, signal: AbortSignal): Promise<readonly Group[]> {
  const path = `/v1/group?org_name=${encodeURIComponent(organization)}`;
  return list(record(await call("GET", path, { organization, signal }), "groups"), "objects").map((value) => {
    const group = record(value, "group");
    const { member_users: users, member_groups: groups } = group;
    return { id: text(group, "id"), name: text(group, "name"), users: textsOf(users), groups: textsOf(groups) };
  });
}

/** The names of the project's settings about reviews. */
export type ReviewSetting = "blind_reviews" | "require_all_human_review_scores";

/** The settings of a project about reviews, by their names. */
export type ReviewSettings = Readonly<Record<ReviewSetting, boolean>>;

const settingsIn = (project: unknown): Fields => fieldsOf(record(project, "project")["settings"]);

const reviewSettings = (all: Fields): ReviewSettings => ({
  blind_reviews: flag(all, "blind_reviews"),
  require_all_human_review_scores: flag(all, "require_all_human_review_scores"),
});

export async function readReviewSettings(organization: string, projectId: string, signal: AbortSignal) {
  return reviewSettings(settingsIn(await call("GET", `/v1/project/${projectId}`, { organization, signal })));
}

/** Changes a setting. A patch replaces all settings, so that the others are sent with it. */
export async function changeReviewSetting(organization: string, projectId: string, name: ReviewSetting, isOn: boolean) {
  const path = `/v1/project/${projectId}`;
  const settings = { ...settingsIn(await call("GET", path, { organization })), [name]: isOn };
  return reviewSettings(settingsIn(await call("PATCH", path, { organization, body: { settings } })));
}
