// A text of which only the beginning is shown while it is long.
import { useState } from "react";
import { Button } from "../../../design/Button";
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
