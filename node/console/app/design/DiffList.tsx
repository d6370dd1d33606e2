// The changes between two JSON values as a list of paths.
import style from "./Diff.module.css";
import { Marked } from "./Marked";
import { CHANGES_MAX, shortened, type PathChange } from "./DiffPaths";

const SIGNS = { added: "+", removed: "−", changed: "~" } as const;

export function DiffList({ changes }: { readonly changes: readonly PathChange[] }) {
  return (
    <div className={style["text"]} tabIndex={0} role="region" aria-label="Differences">
      <ul className={style["paths"]}>
        {changes.map(({ path, kind, before, after }) => (
          <li key={path}>
            <span className={style["sign"]} title={kind}>
              {SIGNS[kind]}
            </span>
            <span className={style["path"]}><Marked text={path} /></span>
            {before !== "" && <del className={style["removed"]}><Marked text={shortened(before)} /></del>}
            {after !== "" && <ins className={style["added"]}><Marked text={shortened(after)} /></ins>}
          </li>
        ))}
      </ul>
      {changes.length >= CHANGES_MAX && <p className={style["equal"]}>The first {CHANGES_MAX} changes are shown.</p>}
    </div>
  );
}
