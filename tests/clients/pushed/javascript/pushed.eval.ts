// An evaluation whose task and scorers were pushed, and one scorer more of its own.
import { Eval, initFunction } from "braintrust";
import { projectName } from "./name";

const told = "echo: hi (told: be brief)";

Eval(projectName, {
  experimentName: "pushed",
  data: [
    { input: { question: "hi" }, expected: told },
    { input: { question: "bye" }, expected: told },
  ],
  task: initFunction({ projectName, slug: "ask" }),
  scores: [
    initFunction({ projectName, slug: "same-length" }),
    initFunction({ projectName, slug: "words" }),
    function starts({ output, expected }: { output: string; expected?: string }) {
      return output[0] === expected?.[0] ? 1 : 0;
    },
  ],
});
