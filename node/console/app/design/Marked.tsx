// A text in which characters that cannot be seen, such as those that turn its direction, are named.
import { Fragment } from "react";
import style from "./Markdown.module.css";
import { piecesOf } from "./MarkdownLine";

export function Marked({ text }: { readonly text: string }) {
  return (
    <>
      {piecesOf(text).map((piece, index) =>
        "text" in piece ? (
          <Fragment key={index}>{piece.text}</Fragment>
        ) : (
          <span key={index} className={style["hidden"]} title="A character that cannot be seen">
            {piece.code}
          </span>
        ),
      )}
    </>
  );
}
