// The open queries as tabs. Arrows move between them, `delete` closes one.
import { useRef, type KeyboardEvent } from "react";
import { IconButton } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { tabTitle, type Desk, type QueryTab } from "../tabs";
import style from "./TabStrip.module.css";

export const tabId = (id: number): string => `query-tab-${id}`;
export const PANEL_ID = "query-panel";

interface TabStripProps {
  readonly desk: Desk;
  readonly onShow: (id: number) => void;
  readonly onClose: (id: number) => void;
  readonly onOpen: () => void;
}

interface TabProps {
  readonly tab: QueryTab;
  readonly isCurrent: boolean;
  readonly onShow: () => void;
  readonly onClose: () => void;
}

function Tab({ tab, isCurrent, onShow, onClose }: TabProps) {
  const title = tabTitle(tab);
  return (
    <div role="presentation" className={classes(style["tab"], isCurrent && style["current"])}>
      <button
        type="button"
        role="tab"
        id={tabId(tab.id)}
        aria-selected={isCurrent}
        aria-controls={PANEL_ID}
        tabIndex={isCurrent ? 0 : -1}
        className={style["name"]}
        title={title}
        onClick={onShow}
        onAuxClick={(event) => {
          if (event.button === 1) onClose();
        }}
      >
        {tab.saved !== "" && <Icon name="bookmark" />}
        <span className={style["title"]}>{title}</span>
      </button>
      <button
        type="button"
        tabIndex={-1}
        className={style["close"]}
        aria-label={`Close ${title}`}
        aria-hidden="true"
        title="Close the tab (Delete)"
        onClick={onClose}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}

export function TabStrip({ desk, onShow, onClose, onOpen }: TabStripProps) {
  const strip = useRef<HTMLDivElement>(null);
  const focusTab = (id: number): void => {
    window.setTimeout(() => document.getElementById(tabId(id))?.focus());
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const index = desk.tabs.findIndex((tab) => tab.id === desk.current);
    const last = desk.tabs.length - 1;
    const target: Readonly<Record<string, number>> = {
      ArrowRight: index >= last ? 0 : index + 1,
      ArrowLeft: index <= 0 ? last : index - 1,
      Home: 0,
      End: last,
    };
    const next = desk.tabs[target[event.key] ?? -1];
    if (next !== undefined) {
      onShow(next.id);
      focusTab(next.id);
    } else if (event.key === "Delete") {
      onClose(desk.current);
      window.setTimeout(() => strip.current?.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
    } else return;
    event.preventDefault();
  };
  return (
    <div className={style["strip"]}>
      <div ref={strip} role="tablist" aria-label="Open queries" className={style["tabs"]} onKeyDown={onKeyDown}>
        {desk.tabs.map((tab) => (
          <Tab
            key={tab.id}
            tab={tab}
            isCurrent={tab.id === desk.current}
            onShow={() => onShow(tab.id)}
            onClose={() => onClose(tab.id)}
          />
        ))}
      </div>
      <IconButton icon="plus" label="New tab" hint={withKeys("New tab", "n")} onClick={onOpen} />
    </div>
  );
}
