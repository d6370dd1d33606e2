// The text of an editor as it looks. It lies below the text area, which shows its caret and its selection only.
import { memo } from "react";
import { classes } from "./classes";
import { sameLines, type Line } from "./EditorLines";
import style from "./Editor.module.css";

/** Keeps a line without text as high as the others. */
const NOTHING = "\u200b";

interface LineProps {
  readonly line: Line;
}

const LineRow = memo(
  function LineRow({ line }: LineProps) {
    return (
      <div className={style["line"]}>
        {line.parts.map(({ text, kind, severity, message }, index) => (
          <span
            key={index}
            className={classes(kind !== null && style[kind], severity !== null && style[severity])}
            data-message={message === "" ? undefined : message}
          >
            {text}
          </span>
        ))}
        {line.parts.length === 0 && NOTHING}
        {line.hints.map((hint, index) => (
          <span key={`hint-${index}`} className={style["hint"]}>
            {hint}
          </span>
        ))}
      </div>
    );
  },
  (before, after) => sameLines(before.line, after.line),
);

export function EditorLayer({ lines }: { readonly lines: readonly Line[] }) {
  return (
    <>
      {lines.map((line, index) => (
        <LineRow key={index} line={line} />
      ))}
    </>
  );
}

/** Where a character of the text is drawn in a layer, in the window; null where it is not drawn. */
export function rectAt(layer: HTMLElement, text: string, at: number): DOMRect | null {
  const before = text.slice(0, at);
  const start = before.lastIndexOf("\n") + 1;
  const row = layer.children.item(before.split("\n").length - 1);
  if (row === null) return null;
  let left = at - start;
  for (const part of row.querySelectorAll(`span:not(.${style["hint"] ?? "hint"})`)) {
    const node = part.firstChild;
    const length = node?.textContent?.length ?? 0;
    if (node === null || left > length) {
      left -= length;
      continue;
    }
    const range = document.createRange();
    range.setStart(node, left);
    range.setEnd(node, left);
    return range.getBoundingClientRect();
  }
  const { left: x, top, height } = row.getBoundingClientRect();
  const indent = Number.parseFloat(getComputedStyle(layer).paddingLeft);
  return new DOMRect(x + indent, top, 0, height);
}
