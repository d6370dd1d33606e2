// A chip: a short word about something, with a colour only where the colour means something.
import type { ReactNode } from "react";
import style from "./Chip.module.css";
import { classes } from "./classes";

export type Tone = "none" | "good" | "bad" | "warn";

export function Chip({ tone = "none", children }: { readonly tone?: Tone; readonly children: ReactNode }) {
  return <span className={classes(style["chip"], tone !== "none" && style[tone])}>{children}</span>;
}
