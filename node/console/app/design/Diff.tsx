// Two texts as one, with what was removed and what was added. Long parts that are the same are folded.
import { useEffect, useMemo, useState } from "react";
import { Button } from "./Button";
import style from "./Diff.module.css";
import { diffCounts, diffOf, foldedSame, type DiffPart } from "./DiffWords";

interface DiffProps {
  readonly before: string;
  readonly after: string;
}

interface SameProps {
  readonly text: string;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

function Same({ text, isFirst, isLast }: SameProps) {
  const [isOpen, setOpen] = useState(false);
  const folded = isOpen ? null : foldedSame(text, isFirst, isLast);
  if (folded === null) return <span>{text}</span>;
  return (
    <>
      {folded.head}
      <button type="button" className={style["more"]} onClick={() => setOpen(true)}>
        Show {folded.hidden.toLocaleString("en-US")} equal lines
      </button>
      {folded.tail === "" ? "" : `\n${folded.tail}`}
    </>
  );
}

function Part({ part, isFirst, isLast }: { readonly part: DiffPart; readonly isFirst: boolean; readonly isLast: boolean }) {
  if (part.kind === "added") return <ins className={style["added"]}>{part.text}</ins>;
  if (part.kind === "removed") return <del className={style["removed"]}>{part.text}</del>;
  return <Same text={part.text} isFirst={isFirst} isLast={isLast} />;
}

/** Longer texts are compared only when somebody asks for it. */
const LENGTH_MAX = 400_000;

export function Diff({ before, after }: DiffProps) {
  const isLong = before.length + after.length > LENGTH_MAX;
  const [isAsked, setAsked] = useState(false);
  useEffect(() => setAsked(false), [before, after]);
  const isShown = !isLong || isAsked;
  const parts = useMemo(() => (isShown ? diffOf(before, after) : []), [before, after, isShown]);
  if (!isShown) return <Button onClick={() => setAsked(true)}>Compare these long texts</Button>;
  const { added, removed } = diffCounts(parts);
  if (parts.every((part) => part.kind === "same")) return <p className={style["equal"]}>Both are the same.</p>;
  return (
    <div className={style["diff"]}>
      <p className={style["counts"]}>
        <span className={style["plus"]}>+{added.toLocaleString("en-US")}</span>{" "}
        <span className={style["minus"]}>−{removed.toLocaleString("en-US")}</span> words
      </p>
      <pre className={style["text"]} tabIndex={0} role="region" aria-label="Differences">
        {parts.map((part, index) => (
          <Part key={index} part={part} isFirst={index === 0} isLast={index === parts.length - 1} />
        ))}
      </pre>
    </div>
  );
}
