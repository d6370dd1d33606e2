// A difference: an arrow, the number with its sign, and a colour where the difference is known to be good or bad.
import { classes } from "./classes";
import style from "./Delta.module.css";

/** `none` for differences that are not certain, or neither good nor bad. */
export type DeltaTone = "good" | "bad" | "none";

interface DeltaProps {
  /** The difference; only its sign matters. */
  readonly value: number;
  /** The difference in words, with its sign; empty for the arrow alone. */
  readonly text: string;
  /** What is spoken in the place of an arrow alone. */
  readonly spoken?: string;
  readonly tone: DeltaTone;
  /** What else is known of it, for the tooltip. */
  readonly title?: string;
}

const SAME_WITHIN = 1e-9;

/** Whether a text says nothing but zeros, because the difference is too small to be written. */
const isZero = (text: string): boolean => text !== "" && !/[1-9]/.test(text);

function arrowOf(value: number, text: string): string {
  if (Math.abs(value) <= SAME_WITHIN || isZero(text)) return "=";
  return value > 0 ? "↑" : "↓";
}

export function Delta({ value, text, tone, title, spoken }: DeltaProps) {
  return (
    <span className={classes(style["delta"], tone !== "none" && style[tone])} title={title}>
      <span aria-hidden="true" className={style["arrow"]}>
        {arrowOf(value, text)}
      </span>
      {text}
      {spoken !== undefined && <span className="only-spoken">{spoken}</span>}
    </span>
  );
}
