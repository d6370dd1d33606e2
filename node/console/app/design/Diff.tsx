// Two texts as one, with what was removed and what was added. Long parts that are the same are folded.
import { useEffect, useMemo, useState } from "react";
import { Button } from "./Button";
import style from "./Diff.module.css";
import { Marked } from "./Marked";
import { DiffList } from "./DiffList";
import { pathChangesOf } from "./DiffPaths";
import { DiffSides } from "./DiffSides";
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
  if (folded === null) return <span><Marked text={text} /></span>;
  return (
    <>
      <Marked text={folded.head} />
      <button type="button" className={style["more"]} onClick={() => setOpen(true)}>
        Show {folded.hidden.toLocaleString("en-US")} equal lines
      </button>
      <Marked text={folded.tail} />
    </>
  );
}

function Part({ part, isFirst, isLast }: { readonly part: DiffPart; readonly isFirst: boolean; readonly isLast: boolean }) {
  if (part.kind === "added") return <ins className={style["added"]}><Marked text={part.text} /></ins>;
  if (part.kind === "removed") return <del className={style["removed"]}><Marked text={part.text} /></del>;
  return <Same text={part.text} isFirst={isFirst} isLast={isLast} />;
}

/** Longer texts are compared only when somebody asks for it. */
const LENGTH_MAX = 400_000;

type Look = "words" | "sides" | "paths";

const TITLES = { words: "Words", sides: "Side by side", paths: "Paths" } as const;

interface LooksProps {
  readonly chosen: Look;
  readonly hasPaths: boolean;
  readonly onChoose: (look: Look) => void;
}

function Looks({ chosen, hasPaths, onChoose }: LooksProps) {
  const looks: readonly Look[] = hasPaths ? ["words", "sides", "paths"] : ["words", "sides"];
  return (
    <span role="group" aria-label="Show the differences as" className={style["looks"]}>
      {looks.map((look) => (
        <Button key={look} look="quiet" aria-pressed={look === chosen} onClick={() => onChoose(look)}>
          {TITLES[look]}
        </Button>
      ))}
    </span>
  );
}

function Words({ parts }: { readonly parts: readonly DiffPart[] }) {
  return (
    <pre className={style["text"]} tabIndex={0} role="region" aria-label="Differences">
      {parts.map((part, index) => (
        <Part key={index} part={part} isFirst={index === 0} isLast={index === parts.length - 1} />
      ))}
    </pre>
  );
}

export function Diff({ before, after }: DiffProps) {
  const isLong = before.length + after.length > LENGTH_MAX;
  const [isAsked, setAsked] = useState(false);
  const [look, setLook] = useState<Look>("words");
  useEffect(() => setAsked(false), [before, after]);
  const isShown = !isLong || isAsked;
  const parts = useMemo(() => (isShown ? diffOf(before, after) : []), [before, after, isShown]);
  const changes = useMemo(() => (isShown ? pathChangesOf(before, after) : null), [before, after, isShown]);
  if (!isShown) return <Button onClick={() => setAsked(true)}>Compare these long texts</Button>;
  const { added, removed } = diffCounts(parts);
  if (parts.every((part) => part.kind === "same")) return <p className={style["equal"]}>Both are the same.</p>;
  const chosen = look === "paths" && changes === null ? "words" : look;
  return (
    <div className={style["diff"]}>
      <div className={style["counts"]}>
        <span>
          <span className={style["plus"]}>+{added.toLocaleString("en-US")}</span>{" "}
          <span className={style["minus"]}>−{removed.toLocaleString("en-US")}</span> words
        </span>
        <Looks chosen={chosen} hasPaths={changes !== null} onChoose={setLook} />
      </div>
      {chosen === "words" && <Words parts={parts} />}
      {chosen === "sides" && <DiffSides before={before} after={after} />}
      {chosen === "paths" && changes !== null && <DiffList changes={changes} />}
    </div>
  );
}
