// The kind of a span by a letter and a colour; the letter alone says it too.
import { classes } from "../../../design/classes";
import style from "./SpanIcon.module.css";

const LETTERS: Readonly<Record<string, string>> = {
  llm: "L",
  tool: "T",
  function: "F",
  task: "K",
  score: "S",
  eval: "E",
  automation: "A",
  facet: "C",
  preprocessor: "P",
  classifier: "C",
  review: "R",
};

export function SpanIcon({ type }: { readonly type: string }) {
  const letter = LETTERS[type] ?? "•";
  return (
    <span className={classes(style["icon"], style[type] ?? style["other"])} aria-hidden="true">
      {letter}
    </span>
  );
}
