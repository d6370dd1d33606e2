// What is wrong with the query, and what the server remarks on it, each with its place and its fix.
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import type { Remark } from "../fixes";
import style from "./Remarks.module.css";

interface RemarksProps {
  readonly remarks: readonly Remark[];
  readonly onPlace: (remark: Remark) => void;
  readonly onFix: (text: string) => void;
}

export function Remarks({ remarks, onPlace, onFix }: RemarksProps) {
  return (
    <ul className={style["remarks"]} aria-label="Remarks on the query" aria-live="polite">
      {remarks.map((remark) => (
        <li key={`${remark.code} ${remark.line} ${remark.column} ${remark.message}`} className={style["remark"]}>
          <span className={classes(style["icon"], style[remark.severity])}>
            <Icon name="warning" />
            <span className="only-spoken">{remark.severity === "error" ? "Error" : "Warning"}</span>
          </span>
          <span className={style["text"]}>
            {remark.line > 0 && (
              <button type="button" className={style["place"]} onClick={() => onPlace(remark)}>
                Line {remark.line}, column {remark.column}
              </button>
            )}
            <span className={style["message"]}>{remark.message}</span>
          </span>
          {remark.fix !== null && <Button onClick={() => onFix(remark.fix?.text ?? "")}>{remark.fix.title}</Button>}
        </li>
      ))}
    </ul>
  );
}
