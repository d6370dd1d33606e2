// A text with what was removed and added since another one.
import type { DiffPart } from "../../../design/DiffWords";
import style from "./DiffText.module.css";

export function DiffText({ parts }: { readonly parts: readonly DiffPart[] }) {
  return parts.map(({ kind, text }, index) => {
    if (kind === "added") return <ins key={index} className={style["added"]}>{text}</ins>;
    if (kind === "removed") return <del key={index} className={style["removed"]}>{text}</del>;
    return <span key={index}>{text}</span>;
  });
}
