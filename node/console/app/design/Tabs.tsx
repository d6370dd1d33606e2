// Tabs: one list of names with the arrows of the keyboard, and the panel of the chosen one.
import { useId, useRef, type KeyboardEvent, type ReactNode } from "react";
import { classes } from "./classes";
import style from "./Tabs.module.css";

export interface Tab {
  readonly id: string;
  readonly title: string;
}

interface TabsProps {
  /** What the tabs are of, for screen readers. */
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly chosen: string;
  readonly onChoose: (id: string) => void;
  readonly children: ReactNode;
}

export function Tabs({ label, tabs, chosen, onChoose, children }: TabsProps) {
  const prefix = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent): void => {
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const last = tabs.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowRight: at >= last ? 0 : at + 1,
      ArrowLeft: at <= 0 ? last : at - 1,
      Home: 0,
      End: last,
    };
    const target = tabs[targets[event.key] ?? -1];
    if (target === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    onChoose(target.id);
    list.current?.querySelector<HTMLElement>(`[data-tab="${CSS.escape(target.id)}"]`)?.focus();
  };
  return (
    <div className={style["tabs"]}>
      <div ref={list} role="tablist" aria-label={label} className={style["list"]} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${prefix}-tab-${tab.id}`}
            data-tab={tab.id}
            aria-selected={tab.id === chosen}
            aria-controls={`${prefix}-panel`}
            tabIndex={tab.id === chosen ? 0 : -1}
            className={classes(style["tab"], tab.id === chosen && style["chosen"])}
            onClick={() => onChoose(tab.id)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${prefix}-panel`} aria-labelledby={`${prefix}-tab-${chosen}`} className={style["panel"]} tabIndex={0}>
        {children}
      </div>
    </div>
  );
}
