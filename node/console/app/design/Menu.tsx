// A menu that opens from a button, with the browser's own popover for what lies on top.
import { useId, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject, type ToggleEvent } from "react";
import { classes } from "./classes";
import { Icon } from "./Icon";
import style from "./Menu.module.css";

export interface MenuItem {
  readonly id: string;
  readonly title: string;
  /** Present for a choice: whether it is the chosen one. */
  readonly isChosen?: boolean;
  /** The heading of a group that starts with this item. */
  readonly heading?: string;
  readonly run: () => void;
}

interface MenuProps {
  /** What the menu is of, for its button and for screen readers. */
  readonly label: string;
  readonly button: ReactNode;
  readonly items: readonly MenuItem[];
  /** Whether the button shows an icon alone. */
  readonly isAlone?: boolean;
  readonly tabIndex?: number | undefined;
  readonly buttonId?: string | undefined;
}

const GAP = 4;

/** Puts the menu below its button, or above it where there is no room, and within the window. */
function place(menu: HTMLElement, button: HTMLElement): void {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = at.bottom + GAP;
  const top = below + height <= window.innerHeight ? below : Math.max(GAP, at.top - GAP - height);
  const left = Math.min(at.left, window.innerWidth - width - GAP);
  menu.style.top = `${top}px`;
  menu.style.left = `${Math.max(GAP, left)}px`;
}

const entriesOf = (menu: HTMLElement | null): readonly HTMLElement[] => [
  ...(menu?.querySelectorAll<HTMLElement>("button") ?? []),
];

/** Moves the focus by arrows, to the ends, or to the next item that starts with a letter. */
function moveFocus(event: KeyboardEvent<HTMLElement>, menu: HTMLElement | null): void {
  const entries = entriesOf(menu);
  const index = entries.findIndex((entry) => entry === document.activeElement);
  const last = entries.length - 1;
  const targets: Readonly<Record<string, number>> = {
    ArrowDown: index >= last ? 0 : index + 1,
    ArrowUp: index <= 0 ? last : index - 1,
    Home: 0,
    End: last,
  };
  const byLetter = (): number => {
    const after = [...entries.slice(index + 1), ...entries.slice(0, index + 1)];
    const found = after.find((entry) => entry.innerText.trim().toLowerCase().startsWith(event.key.toLowerCase()));
    return found === undefined ? -1 : entries.indexOf(found);
  };
  const target = targets[event.key] ?? (event.key.length === 1 && event.key !== " " ? byLetter() : -1);
  if (target < 0) return;
  event.preventDefault();
  entries[target]?.focus();
}

function Item({ item, onRun }: { readonly item: MenuItem; readonly onRun: () => void }) {
  const isChoice = item.isChosen !== undefined;
  return (
    <>
      {item.heading !== undefined && (
        <div className={style["heading"]} role="presentation">
          {item.heading}
        </div>
      )}
      <button
        type="button"
        tabIndex={-1}
        className={style["item"]}
        role={isChoice ? "menuitemradio" : "menuitem"}
        aria-checked={item.isChosen}
        onClick={onRun}
      >
        {isChoice && <span className={style["mark"]}>{item.isChosen === true && <Icon name="check" />}</span>}
        <span className={style["title"]}>{item.title}</span>
      </button>
    </>
  );
}

interface OpenerProps extends Pick<MenuProps, "label" | "button" | "tabIndex" | "buttonId"> {
  readonly isAlone: boolean;
  readonly isOpen: boolean;
  readonly menuId: string;
  readonly element: RefObject<HTMLButtonElement | null>;
  readonly onOpen: () => void;
}

function Opener({ label, button, tabIndex, buttonId, isAlone, isOpen, menuId, element, onOpen }: OpenerProps) {
  return (
    <button
      type="button"
      ref={element}
      id={buttonId}
      tabIndex={tabIndex}
      className={classes(style["button"], isAlone && style["alone"])}
      aria-label={isAlone ? label : undefined}
      title={label}
      aria-haspopup="menu"
      aria-expanded={isOpen}
      aria-controls={menuId}
      popoverTarget={menuId}
      onKeyDown={(event) => {
        if (event.key !== "ArrowDown" || isOpen) return;
        event.preventDefault();
        onOpen();
      }}
    >
      {button}
    </button>
  );
}

export function Menu({ label, button, items, isAlone = false, tabIndex, buttonId }: MenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const menuId = useId();
  const close = (): void => {
    menu.current?.hidePopover();
    opener.current?.focus();
  };
  const onToggle = (event: ToggleEvent<HTMLDivElement>): void => {
    const opens = event.newState === "open";
    setOpen(opens);
    if (!opens || menu.current === null || opener.current === null) return;
    place(menu.current, opener.current);
    entriesOf(menu.current)[0]?.focus();
  };
  return (
    <>
      <Opener
        {...{ label, button, tabIndex, buttonId, isAlone, isOpen, menuId }}
        element={opener}
        onOpen={() => menu.current?.showPopover()}
      />
      <div
        ref={menu}
        id={menuId}
        popover="auto"
        role="menu"
        aria-label={label}
        className={style["menu"]}
        onToggle={onToggle}
        onKeyDown={(event) => {
          if (event.key === "Tab") close();
          else moveFocus(event, menu.current);
        }}
      >
        {items.map((item) => (
          <Item
            key={item.id}
            item={item}
            onRun={() => {
              close();
              item.run();
            }}
          />
        ))}
      </div>
    </>
  );
}
