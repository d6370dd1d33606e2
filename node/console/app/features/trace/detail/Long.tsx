// A text of which only the beginning is shown while it is long, and one that is laid out if it is Markdown.
import { useState } from "react";
import { Button } from "../../../design/Button";
import { Markdown } from "../../../design/Markdown";
import { Marked } from "../../../design/Marked";
import style from "./Detail.module.css";

/** The end of the beginning that is shown: never between the halves of a letter. */
const cut = (text: string, limit: number): string => text.slice(0, limit).replace(/[\ud800-\udbff]$/, "");

export function Long({ text, limit }: { readonly text: string; readonly limit: number }) {
  const [isOpen, setOpen] = useState(false);
  // a fold that would hide little is more work than reading
  const isLong = text.length > limit * 1.2;
  return (
    <>
      <p className={style["text"]}>
        <Marked text={isLong && !isOpen ? `${cut(text, limit)}…` : text} />
      </p>
      {isLong && (
        <div>
          <Button look="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Show less" : `Show all ${text.length.toLocaleString("en-US")} characters`}
          </Button>
        </div>
      )}
    </>
  );
}

/** What only Markdown has: headings, lists, tables, code, links and bold words. */
const MARKDOWN = /^ {0,3}(?:#{1,6} |[-*+] |\d+[.)] |> |```|\|.*\|)|\*\*\S|`[^`]+`|\]\(/m;

interface ProseProps {
  readonly text: string;
  readonly limit: number;
  /** Whether the text is written to be read, so that Markdown in it is laid out. */
  readonly isRead: boolean;
}

export function Prose({ text, limit, isRead }: ProseProps) {
  return isRead && text.length <= limit * 5 && MARKDOWN.test(text) ? <Markdown text={text} /> : <Long text={text} limit={limit} />;
}
