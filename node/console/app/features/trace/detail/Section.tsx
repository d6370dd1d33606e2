// The parts of a detail: a section with its heading, and facts as pairs of a name and a value.
import type { ReactNode } from "react";
import style from "./Detail.module.css";

interface SectionProps {
  readonly title: string;
  /** What stands beside the heading. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

export function Section({ title, aside, children }: SectionProps) {
  return (
    <section className={style["section"]} aria-label={title}>
      <div className={style["sectionHead"]}>
        <h3 className={style["heading"]}>{title}</h3>
        {aside}
      </div>
      {children}
    </section>
  );
}

export function Pair({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className={style["pair"]}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
