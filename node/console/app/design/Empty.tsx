// What stands where there is nothing: one sentence that says why, and the way out.
import type { ReactNode } from "react";
import style from "./Empty.module.css";

export function Empty({ children, action }: { readonly children: ReactNode; readonly action?: ReactNode }) {
  return (
    <div className={style["empty"]}>
      <p>{children}</p>
      {action !== undefined && <div className={style["action"]}>{action}</div>}
    </div>
  );
}
