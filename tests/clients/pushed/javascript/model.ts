// A client of a model that is made when the bundle is loaded.
import OpenAI from "openai";
import { z } from "zod";
import { project } from "./project";

const client = new OpenAI();

project.tools.create({
  name: "Ask a model",
  slug: "ask-a-model",
  parameters: z.object({ question: z.string() }),
  handler: async ({ question }: { question: string }) => {
    const answer = await client.chat.completions.create({
      model: "scripted",
      messages: [{ role: "user", content: question }],
    });
    return answer.choices[0]?.message.content;
  },
});
