// The scorers that every organization has and that need nothing but input, output and expected.

export interface GlobalScorer {
  readonly name: string;
  readonly text: string;
  /** Whether it asks a model, which may be chosen. */
  readonly isJudge: boolean;
}

const computed = (name: string, text: string): GlobalScorer => ({ name, text, isJudge: false });
const judge = (name: string, text: string): GlobalScorer => ({ name, text, isJudge: true });

export const GLOBALS: readonly GlobalScorer[] = [
  computed("ExactMatch", "Output is the expected value"),
  computed("Levenshtein", "Few letters differ from the expected text"),
  computed("NumericDiff", "Output is near the expected number"),
  computed("JSONDiff", "Output is like the expected JSON"),
  computed("ValidJSON", "Output is JSON"),
  computed("ListContains", "Output has the expected items"),
  computed("EmbeddingSimilarity", "Output means the expected text, by embeddings"),
  computed("Moderation", "Output is harmless, by a moderation model"),
  judge("Factuality", "Output agrees with the expected facts"),
  judge("Summary", "Output summarizes the input better than expected"),
  judge("Sql", "Output is the same SQL as expected"),
  judge("Possible", "Output solves what the input asks"),
  judge("Security", "Output is not malicious"),
  judge("Humor", "Output is funny"),
];

export const isJudgeName = (name: string): boolean => GLOBALS.some((one) => one.isJudge && one.name === name);
