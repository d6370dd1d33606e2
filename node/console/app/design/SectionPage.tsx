// The page of one section of the settings: its heading, what it is for, its main actions, and its content.
import type { ReactNode } from "react";
import style from "./SectionPage.module.css";

interface SectionPageProps {
  readonly title: string;
  /** What the section is for, in a sentence or two. */
  readonly note?: ReactNode;
  /** The buttons beside the heading. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function SectionPage({ title, note, actions, children }: SectionPageProps) {
  return (
    <div className={style["page"]}>
      <header className={style["head"]}>
        <h1 tabIndex={-1}>{title}</h1>
        {actions !== undefined && <div className={style["actions"]}>{actions}</div>}
        {Boolean(note) && <p className={style["note"]}>{note}</p>}
      </header>
      {children}
    </div>
  );
}
