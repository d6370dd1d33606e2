// Code to copy, in several languages by tabs.
import { useId, useRef, type KeyboardEvent } from "react";
import { classes } from "./classes";
import style from "./Code.module.css";
import { Copy } from "./Copy";

export interface Snippet<Id extends string> {
  readonly id: Id;
  readonly title: string;
  /** What to do before, in a sentence. */
  readonly before: string;
  readonly code: string;
}

interface CodeProps<Id extends string> {
  readonly snippets: readonly Snippet<Id>[];
  readonly chosen: Id;
  readonly onChoose: (id: Id) => void;
  readonly label: string;
}

interface TabProps {
  /** What the ids of the tabs and their panel start with. */
  readonly id: string;
  readonly snippet: Snippet<string>;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function Tab({ id, snippet, isChosen, onChoose }: TabProps) {
  return (
    <button
      type="button"
      role="tab"
      id={`${id}-${snippet.id}`}
      aria-selected={isChosen}
      aria-controls={`${id}-panel`}
      tabIndex={isChosen ? 0 : -1}
      className={classes(style["tab"], isChosen && style["chosen"])}
      onClick={onChoose}
    >
      {snippet.title}
    </button>
  );
}

/** One snippet stands alone; several have tabs. */
export function Code<Id extends string>({ snippets, chosen, onChoose, label }: CodeProps<Id>) {
  const id = useId();
  const tabs = useRef<HTMLDivElement>(null);
  const index = Math.max(0, snippets.findIndex((snippet) => snippet.id === chosen));
  const shown = snippets[index];
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = (index + by + snippets.length) % snippets.length;
    const snippet = snippets[next];
    if (by === 0 || snippet === undefined) return;
    event.preventDefault();
    onChoose(snippet.id);
    tabs.current?.querySelectorAll("button")[next]?.focus();
  };
  if (shown === undefined) return null;
  const panel =
    snippets.length === 1
      ? {}
      : ({ role: "tabpanel", id: `${id}-panel`, "aria-labelledby": `${id}-${shown.id}` } as const);
  return (
    <div className={style["code"]}>
      <div className={style["head"]}>
        {snippets.length === 1 ? (
          <span className={style["only"]}>{shown.title}</span>
        ) : (
          <div ref={tabs} role="tablist" aria-label={label} className={style["tabs"]} onKeyDown={onKeyDown}>
            {snippets.map((snippet) => (
              <Tab
                key={snippet.id}
                id={id}
                snippet={snippet}
                isChosen={snippet === shown}
                onChoose={() => onChoose(snippet.id)}
              />
            ))}
          </div>
        )}
        <Copy text={shown.code} what="the code" title="Copy" />
      </div>
      <div {...panel}>
        <p className={style["before"]}>{shown.before}</p>
        <pre className={style["text"]} tabIndex={0} role="region" aria-label={`${label}: ${shown.title}`}>
          <code>{shown.code}</code>
        </pre>
      </div>
    </div>
  );
}
