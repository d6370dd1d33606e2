// Scorers of code: plain, asynchronous, with a trace, as a class; and one that a model judges.
import { project } from "./project";

type Scored = { input?: unknown; output: string; expected?: string; metadata?: Record<string, unknown> };

project.scorers.create({
  name: "Same length",
  slug: "same-length",
  handler: ({ output, expected }: Scored) => (output.length === expected?.length ? 1 : 0),
});

project.scorers.create({
  name: "Words",
  slug: "words",
  handler: async ({ output, expected, metadata }: Scored) => {
    await Promise.resolve();
    const words = output.split(" ").length;
    return { name: "Words", score: 1 / words, metadata: { words, known: expected === null, metadata } };
  },
});

class Prefix {
  constructor(private readonly letters: number) {}

  score = ({ output, expected }: Scored) => ({
    name: "Prefix",
    score: output.slice(0, this.letters) === expected?.slice(0, this.letters) ? 1 : 0,
  });
}

project.scorers.create({ name: "Prefix", slug: "prefix", handler: new Prefix(2).score });

// Reads the spans of the trace that it scores.
project.scorers.create({
  name: "Spans",
  slug: "spans",
  handler: async ({ trace }: { trace?: { getSpans(options: object): Promise<{ output: unknown }[]> } }) => {
    const spans = (await trace?.getSpans({ spanType: ["llm"] })) ?? [];
    return { name: "Spans", score: spans.length > 0 ? 1 : 0, metadata: { outputs: spans.map(({ output }) => output) } };
  },
});

project.scorers.create({
  name: "Judge",
  slug: "judge",
  messages: [{ role: "user", content: "Is {{output}} right, where {{expected}} is expected?" }],
  model: "scripted",
  useCot: true,
  choiceScores: { right: 1, wrong: 0.25 },
});
