// Two texts side by side, line by line. Lines that are the same and far from a change are folded.
import { useMemo, useState } from "react";
import { classes } from "./classes";
import style from "./Diff.module.css";
import { Marked } from "./Marked";
import { linePairs, type DiffPart, type LinePair } from "./DiffWords";

/** Equal lines beside a change that stay in view, and lines that are shown at once. */
const CONTEXT = 3;
const LINES_MAX = 1000;

type Shown = { readonly pair: LinePair } | { readonly from: number; readonly hidden: number };

/** The lines that are shown: all that are near a change, and how many are folded between them. */
function shownOf(pairs: readonly LinePair[], opened: ReadonlySet<number>): readonly Shown[] {
  const isNear = new Uint8Array(pairs.length);
  pairs.forEach((pair, at) => {
    if (!pair.isSame) isNear.fill(1, Math.max(at - CONTEXT, 0), at + CONTEXT + 1);
  });
  const shown: Shown[] = [];
  for (let at = 0; at < pairs.length && shown.length < LINES_MAX; ) {
    let end = at;
    while (end < pairs.length && isNear[end] === 0) end += 1;
    if (end - at > 1 && !opened.has(at)) {
      shown.push({ from: at, hidden: end - at });
      at = end;
      continue;
    }
    for (end = Math.max(end, at + 1); at < end; at += 1) {
      const pair = pairs[at];
      if (pair !== undefined) shown.push({ pair });
    }
  }
  return shown;
}

function Side({ parts, kind, isSame }: { readonly parts: readonly DiffPart[] | null; readonly kind: "added" | "removed"; readonly isSame: boolean }) {
  if (parts === null) return <td className={style["absent"]} />;
  const Mark = kind === "added" ? "ins" : "del";
  return (
    <td>
      <span className={classes(style["sign"], !isSame && style[kind === "added" ? "plus" : "minus"])}>{isSame ? "" : kind === "added" ? "+" : "−"}</span>
      {parts.map((part, index) =>
        part.kind === "same" ? (
          <span key={index}><Marked text={part.text} /></span>
        ) : (
          <Mark key={index} className={style[kind]}>
            <Marked text={part.text} />
          </Mark>
        ),
      )}
    </td>
  );
}

export function DiffSides({ before, after }: { readonly before: string; readonly after: string }) {
  const pairs = useMemo(() => linePairs(before, after), [before, after]);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const shown = useMemo(() => shownOf(pairs, opened), [pairs, opened]);
  return (
    <div className={style["text"]} tabIndex={0} role="region" aria-label="Differences">
      <table className={style["sides"]}>
        <thead>
          <tr>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((line, index) =>
            "hidden" in line ? (
              <tr key={index}>
                <td colSpan={2}>
                  <button type="button" className={style["more"]} onClick={() => setOpened(new Set([...opened, line.from]))}>
                    Show {line.hidden.toLocaleString("en-US")} equal lines
                  </button>
                </td>
              </tr>
            ) : (
              <tr key={index}>
                <Side parts={line.pair.before} kind="removed" isSame={line.pair.isSame} />
                <Side parts={line.pair.after} kind="added" isSame={line.pair.isSame} />
              </tr>
            ),
          )}
        </tbody>
      </table>
      {shown.length >= LINES_MAX && <p className={style["equal"]}>The first {LINES_MAX.toLocaleString("en-US")} lines are shown.</p>}
    </div>
  );
}
