// Bars in the place of a whole screen: its heading and some lines.
import { Skeleton } from "./Skeleton";
import style from "./Skeleton.module.css";

const LINES = [[18], [64], [56, 12], [60, 10], [48, 14], [58, 8]];

/** What a screen shows until it knows what it is about. */
export const SCREEN_SKELETON = (
  <div className={style["screen"]}>
    <Skeleton lines={LINES} />
  </div>
);
