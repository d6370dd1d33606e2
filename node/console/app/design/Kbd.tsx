// Keys as caps.
import { keyCaps, type Sequence } from "../lib/keys";
import style from "./Kbd.module.css";

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

export function Kbd({ keys }: { readonly keys: Sequence }) {
  return (
    <span className={style["keys"]}>
      {keyCaps(keys, isApple).map((cap, index) => (
        <kbd key={index} className={style["cap"]}>
          {cap}
        </kbd>
      ))}
    </span>
  );
}

/** A title with its keys, for a tooltip. */
export const withKeys = (title: string, keys: Sequence | undefined): string =>
  keys === undefined ? title : `${title} (${keyCaps(keys, isApple).join(" ")})`;
