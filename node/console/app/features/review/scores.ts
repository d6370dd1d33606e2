// Which scores of a project somebody gives a row, and in what order.
import type { Group, Score, ScoreType } from "../../api/reviewScores";

const GIVEN: ReadonlySet<ScoreType> = new Set(["slider", "categorical", "free-form"]);

/** Whether people give a score, and it is not made of others. */
export const isGiven = ({ type }: Score): boolean => GIVEN.has(type);

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** The scores in their order: those with a position first, the others by their age. */
export const ordered = (scores: readonly Score[]): readonly Score[] =>
  [...scores].sort(
    (one, other) => compare(one.position ?? "~", other.position ?? "~") || compare(one.created, other.created) || compare(one.id, other.id),
  );

/** The ids of the groups that somebody belongs to, by themselves or by a group that is a member. */
export function groupsOf(groups: readonly Group[], userId: string): ReadonlySet<string> {
  const found = new Set(groups.filter(({ users }) => users.includes(userId)).map(({ id }) => id));
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { id, groups: members } of groups) if (members.some((member) => found.has(member))) found.add(id);
  }
  return found;
}

/** Whether somebody is asked for a score. One that names nobody is for everybody. */
export const isFor = ({ users, groups }: Score, userId: string, own: ReadonlySet<string>): boolean =>
  (users.length === 0 && groups.length === 0) || users.includes(userId) || groups.some((id) => own.has(id));

/** The scores that somebody gives rows of a kind, whatever their conditions say. */
export const askedOf = (
  scores: readonly Score[],
  kind: string,
  userId: string,
  groups: readonly Group[],
): readonly Score[] => {
  const own = groupsOf(groups, userId);
  return ordered(scores).filter(
    (score) => isGiven(score) && (score.kinds.length === 0 || score.kinds.includes(kind)) && isFor(score, userId, own),
  );
};

/** Whether the groups have to be known to tell who gives the scores. */
export const needsGroups = (scores: readonly Score[]): boolean => scores.some(({ groups }) => groups.length > 0);

/** Whether a score is hidden under conditions, of which only a query can tell whether they hold. */
export const isConditional = ({ clauses: { row, below, trace } }: Score): boolean => row.length + below.length + trace.length > 0;
