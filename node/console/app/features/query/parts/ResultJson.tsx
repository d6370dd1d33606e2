// The result as JSON. Lines have one height, and only those in view are drawn.
import { useMemo, useRef, useState } from "react";
import { Copy } from "../../../design/Copy";
import type { Ran } from "../runner";
import style from "./ResultJson.module.css";

const LINE_PX = 20;
const SPARE = 20;

/** Longer lines are cut, with their length. Copying gives all of them. */
const LINE_LENGTH = 2000;

const cut = (line: string): string =>
  line.length > LINE_LENGTH ? `${line.slice(0, LINE_LENGTH)}… ${line.length.toLocaleString("en-US")} characters` : line;

export function ResultJson({ ran }: { readonly ran: Ran }) {
  const text = useMemo(() => JSON.stringify(ran.rows, null, 2), [ran.rows]);
  const lines = useMemo(() => text.split("\n"), [text]);
  const [first, setFirst] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const height = box.current?.clientHeight ?? 800;
  const start = Math.max(0, first - SPARE);
  const end = Math.min(lines.length, first + Math.ceil(height / LINE_PX) + SPARE);
  return (
    <div className={style["json"]}>
      <div className={style["copy"]}>
        <Copy text={text} what="the JSON of the result" title="Copy" />
      </div>
      <div
        ref={box}
        className={style["scroll"]}
        tabIndex={0}
        role="region"
        aria-label={`JSON of the result, ${lines.length.toLocaleString("en-US")} lines`}
        onScroll={(event) => setFirst(Math.floor(event.currentTarget.scrollTop / LINE_PX / 10) * 10)}
      >
        <div className={style["all"]} style={{ height: `${lines.length * LINE_PX + 16}px` }}>
          <pre className={style["lines"]} style={{ top: `${start * LINE_PX + 8}px` }}>
            {lines.slice(start, end).map(cut).join("\n")}
          </pre>
        </div>
      </div>
    </div>
  );
}
