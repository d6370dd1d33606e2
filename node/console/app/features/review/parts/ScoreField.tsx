// The field of one score: a slider, options of which one or several are chosen, or a text.
import { useId, type ReactNode } from "react";
import type { Category, Score } from "../../../api/reviewScores";
import { score as scoreText } from "../../../lib/numbers";
import { chosen, isChosen, isSeveral, type Answer } from "../answers";
import style from "./Form.module.css";

/** The attribute that marks the fields of the form, in their order. */
export const FIELD = "data-field";

const DIGITS = 9;

interface FieldProps {
  readonly score: Score;
  readonly answer: Answer | undefined;
  readonly onAnswer: (answer: Answer | null) => void;
}

function Slider({ score, answer, onAnswer }: FieldProps) {
  const value = typeof answer === "number" ? answer : null;
  return (
    <div className={style["slider"]}>
      <input
        type="range"
        aria-label={score.name}
        aria-valuetext={value === null ? "not given" : scoreText(value)}
        min={0}
        max={1}
        step={0.005}
        value={value ?? 0}
        onInput={(event) => onAnswer(Number(event.currentTarget.value))}
      />
      <output>{scoreText(value)}</output>
    </div>
  );
}

function Options({ score, answer, onAnswer, name }: FieldProps & { readonly name: string }) {
  const type = isSeveral(score) ? "checkbox" : "radio";
  const option = (category: Category, index: number): ReactNode => (
    <label key={category.name} className={style["option"]}>
      <input
        type={type}
        name={name}
        checked={isChosen(answer, category)}
        onChange={() => onAnswer(chosen(score, answer, category.name))}
      />
      <span className={style["optionName"]}>{category.name}</span>
      {index < DIGITS && (
        <kbd className={style["digit"]} aria-hidden="true">
          {index + 1}
        </kbd>
      )}
    </label>
  );
  return <div className={style["options"]}>{score.categories.map(option)}</div>;
}

function Control(props: FieldProps & { readonly name: string }) {
  const { score, answer, onAnswer } = props;
  switch (score.type) {
    case "slider":
      return <Slider {...props} />;
    case "categorical":
      return <Options {...props} />;
    default:
      return (
        <textarea
          rows={2}
          aria-label={score.name}
          value={typeof answer === "string" ? answer : ""}
          onInput={(event) => onAnswer(event.currentTarget.value === "" ? null : event.currentTarget.value)}
        />
      );
  }
}

export function ScoreField(props: FieldProps) {
  const { score } = props;
  const id = useId();
  const isRadio = score.type === "categorical" && !isSeveral(score);
  return (
    <div
      className={style["field"]}
      role={isRadio ? "radiogroup" : "group"}
      aria-labelledby={id}
      aria-describedby={score.description === "" ? undefined : `${id}-hint`}
      {...{ [FIELD]: "" }}
    >
      <span id={id} className={style["name"]}>
        {score.name}
      </span>
      {score.description !== "" && (
        <p id={`${id}-hint`} className={style["hint"]}>
          {score.description}
        </p>
      )}
      <Control {...props} name={id} />
    </div>
  );
}
