// A bar that is filled in part. It is decoration: its numbers stand beside it.
import { classes } from "./classes";
import style from "./Meter.module.css";

interface MeterProps {
  /** From 0 to 1; more counts as full. */
  readonly share: number;
  /** A second part after the first one, such as what is reserved. */
  readonly more?: number;
  readonly tone?: "none" | "warn" | "bad";
}

const percent = (share: number): string => `${(Math.min(Math.max(share, 0), 1) * 100).toFixed(2)}%`;

export function Meter({ share, more = 0, tone = "none" }: MeterProps) {
  return (
    <span className={classes(style["meter"], tone !== "none" && style[tone])} aria-hidden="true">
      <span className={style["fill"]} style={{ width: percent(share) }} />
      {more > 0 && <span className={style["more"]} style={{ width: percent(Math.min(more, 1 - share)) }} />}
    </span>
  );
}
