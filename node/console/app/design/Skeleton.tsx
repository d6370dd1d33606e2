// Bars in the place of what is being read. They do not move.
import style from "./Skeleton.module.css";

/** The widths of the bars of a line, in characters. */
export function Skeleton({ lines }: { readonly lines: readonly (readonly number[])[] }) {
  return (
    <div className={style["skeleton"]} aria-hidden="true">
      {lines.map((widths, line) => (
        <div key={line} className={style["line"]}>
          {widths.map((width, bar) => (
            <span key={bar} className={style["bar"]} style={{ width: `${width}ch` }} />
          ))}
        </div>
      ))}
    </div>
  );
}
