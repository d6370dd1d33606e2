// A dialog with a list to choose from: type to filter, arrows to move, `enter` to choose.
import { useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { Dialog } from "../../../design/Dialog";
import { Empty } from "../../../design/Empty";
import { Menu, type MenuItem } from "../../../design/Menu";
import { Icon } from "../../../design/Icon";
import style from "./PickDialog.module.css";

export interface Pick {
  readonly id: string;
  readonly title: string;
  readonly note?: string;
  /** Whether the title is code. */
  readonly isCode?: boolean;
  readonly run: () => void;
  readonly actions?: readonly MenuItem[];
}

interface PickDialogProps {
  readonly title: string;
  readonly picks: readonly Pick[];
  /** What is shown where there is nothing to choose from. */
  readonly empty: string;
  readonly before?: ReactNode;
  readonly onClose: () => void;
}

const MOST_SHOWN = 200;

const buttonsOf = (list: HTMLElement | null): readonly HTMLElement[] => [
  ...(list?.querySelectorAll<HTMLElement>("[data-pick]") ?? []),
];

function PickLine({ pick }: { readonly pick: Pick }) {
  return (
    <li className={style["line"]}>
      <button type="button" data-pick="" className={style["pick"]} onClick={pick.run}>
        <span className={pick.isCode === true ? style["code"] : style["title"]}>{pick.title}</span>
        {pick.note !== undefined && <span className={style["note"]}>{pick.note}</span>}
      </button>
      {pick.actions !== undefined && (
        <Menu label={`Actions of ${pick.title}`} isAlone button={<Icon name="more" />} items={pick.actions} />
      )}
    </li>
  );
}

export function PickDialog({ title, picks, empty, before, onClose }: PickDialogProps) {
  const [filter, setFilter] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const shown = picks
    .filter((pick) => words.every((word) => `${pick.title} ${pick.note ?? ""}`.toLowerCase().includes(word)))
    .slice(0, MOST_SHOWN);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.target instanceof Element && event.target.closest("[role=menu]") !== null) return;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by === 0) return;
    const buttons = buttonsOf(list.current);
    const index = buttons.findIndex((button) => button === document.activeElement);
    event.preventDefault();
    buttons[Math.min(Math.max(index + by, 0), buttons.length - 1)]?.focus();
  };
  return (
    <Dialog title={title} form="wide" onClose={onClose}>
      <div className={style["inside"]} onKeyDown={onKeyDown}>
        {before}
        {picks.length === 0 ? (
          <Empty>{empty}</Empty>
        ) : (
          <>
            <input
              type="search"
              className={style["filter"]}
              aria-label={`Filter: ${title}`}
              placeholder="Filter"
              autoFocus
              autoComplete="off"
              value={filter}
              onChange={(event) => setFilter(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter") shown[0]?.run();
              }}
            />
            <ul ref={list} className={style["list"]} aria-label={title}>
              {shown.map((pick) => (
                <PickLine key={pick.id} pick={pick} />
              ))}
            </ul>
            {shown.length === 0 && <p className={style["nothing"]}>Nothing fits “{filter}”.</p>}
          </>
        )}
      </div>
    </Dialog>
  );
}
