// Prompts, one of which has a tool that is pushed with it; a classifier, and parameters.
import { z } from "zod";
import { project } from "./project";

const weather = project.tools.create({
  name: "Weather",
  slug: "weather",
  description: "Tells the weather of a city",
  parameters: z.object({ city: z.string() }),
  handler: ({ city }) => `${city}: sunny`,
});

project.prompts.create({
  name: "Ask",
  slug: "ask",
  messages: [
    { role: "system", content: "be brief" },
    { role: "user", content: "{{question}}" },
  ],
  model: "scripted",
});

project.prompts.create({
  name: "Agent",
  slug: "agent",
  messages: [{ role: "user", content: "rounds 1 {{question}}" }],
  model: "scripted",
  tools: [weather],
});

project.classifiers.create({
  name: "Tone",
  slug: "tone",
  handler: ({ output }: { output: string }) => ({
    name: "Tone",
    id: output.endsWith("!") ? "loud" : "calm",
    label: output.endsWith("!") ? "Loud" : "Calm",
  }),
});

project.parameters.create({
  name: "Knobs",
  slug: "knobs",
  schema: {
    model: { type: "model", default: "scripted" },
    prefix: z.string().default("so"),
    count: z.number().int().default(3),
  },
});
