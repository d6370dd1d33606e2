// A field with a list of options to choose from, below it or in a panel over the page.
import {
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
} from "react";
import { classes } from "./classes";
import style from "./Combobox.module.css";
import { keptOption, movedOption, type ComboOption } from "./ComboboxLogic";
import { Icon } from "./Icon";
import { placeBeside } from "./PopoverLogic";

export type { ComboOption } from "./ComboboxLogic";

export interface ComboboxProps {
  readonly label: string;
  readonly value: string;
  /** Takes what was typed over, with the place of the caret. */
  readonly onValue: (value: string, caret: number) => void;
  readonly options: readonly ComboOption[];
  readonly onPick: (option: ComboOption) => void;
  /** `inline` shows the list below the field, `popup` in a panel while the field has the focus. */
  readonly form: "inline" | "popup";
  readonly input?: RefObject<HTMLInputElement | null>;
  readonly id?: string;
  readonly placeholder?: string;
  /** Whether the first option is the current one before somebody moves to it. */
  readonly isFirstCurrent?: boolean;
  /** What is said instead of a list without options. */
  readonly whenEmpty?: ReactNode;
  /** What lies behind the letters of the field, which are then not painted. */
  readonly behind?: ReactNode;
  /** Whether several options can be chosen. */
  readonly isMultiple?: boolean;
  /** Whether a panel stays open after a choice, because another one follows. */
  readonly staysOpen?: boolean;
  readonly isInvalid?: boolean;
  readonly describedBy?: string | undefined;
  /** Gets each key before the field; what it prevents is done. */
  readonly onKey?: (event: KeyboardEvent<HTMLInputElement>, isOpen: boolean) => void;
  readonly onCaret?: (caret: number) => void;
  readonly onScroll?: (left: number) => void;
}

interface OptionsProps {
  readonly id: string;
  readonly label: string;
  readonly options: readonly ComboOption[];
  readonly current: number;
  readonly isMultiple: boolean;
  readonly onPick: (option: ComboOption) => void;
}

const optionId = (id: string, index: number): string => `${id}-${index}`;

function Options({ id, label, options, current, isMultiple, onPick }: OptionsProps) {
  return (
    <div id={id} role="listbox" aria-label={label} aria-multiselectable={isMultiple || undefined} className={style["list"]}>
      {options.map((option, index) => (
        <div key={option.id} role="presentation">
          {option.heading !== undefined && (
            <div className={style["heading"]} role="presentation">
              {option.heading}
            </div>
          )}
          <div
            id={optionId(id, index)}
            role="option"
            aria-selected={isMultiple ? option.isChosen === true : index === current}
            className={classes(style["option"], index === current && style["current"])}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onPick(option)}
          >
            {isMultiple && <span className={style["mark"]}>{option.isChosen === true && <Icon name="check" />}</span>}
            <span className={style["label"]}>{option.label}</span>
            {option.detail !== undefined && option.detail !== "" && (
              <span className={style["detail"]}>{option.detail}</span>
            )}
          </div>
        </div>
      ))}
    </div>
  );
}

/** The panel of the list, in the top layer so that nothing cuts it off. */
function Panel({ anchor, children }: { readonly anchor: RefObject<HTMLElement | null>; readonly children: ReactNode }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const panel = element.current;
    panel?.showPopover();
    return () => {
      if (panel?.matches(":popover-open") === true) panel.hidePopover();
    };
  }, []);
  useLayoutEffect(() => {
    if (element.current !== null && anchor.current !== null) placeBeside(element.current, anchor.current);
  });
  return (
    <div ref={element} popover="manual" className={style["panel"]}>
      {children}
    </div>
  );
}

/** The current option: by default the first or none, and kept while the list changes around it. */
function useCurrent(options: readonly ComboOption[], isFirstCurrent: boolean) {
  const [chosen, setChosen] = useState<string | null>(null);
  const current = keptOption(options, chosen, isFirstCurrent ? 0 : -1);
  const set = (index: number): void => setChosen(options[index]?.id ?? null);
  return { current, set };
}

/** Keeps the current option in sight. */
function useInSight(id: string, current: number): void {
  useEffect(() => {
    if (current >= 0) document.getElementById(optionId(id, current))?.scrollIntoView({ block: "nearest" });
  }, [id, current]);
}

/** What the field and the list share. */
function useList(props: ComboboxProps) {
  const { options, form, isFirstCurrent = false } = props;
  const id = useId();
  const own = useRef<HTMLInputElement>(null);
  const input = props.input ?? own;
  const [isShown, setShown] = useState(false);
  const { current, set } = useCurrent(options, isFirstCurrent);
  const isOpen = options.length > 0 && (form === "inline" || isShown);
  useInSight(id, isOpen ? current : -1);
  useLayoutEffect(() => {
    if (form === "inline") input.current?.focus();
  }, []);
  const pick = (option: ComboOption): void => {
    props.onPick(option);
    set(-1);
    if (props.staysOpen !== true) setShown(false);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    props.onKey?.(event, isOpen && current >= 0);
    if (event.defaultPrevented) return;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const option = isOpen ? options[current] : undefined;
    if (by !== 0) {
      if (isOpen) set(movedOption(options.length, current, by));
      else setShown(true);
    } else if (event.key === "Enter" && option !== undefined) pick(option);
    else if (event.key === "Escape" && form === "popup" && isOpen) setShown(false);
    else return;
    event.preventDefault();
  };
  return { id, input, isOpen, current, setShown, pick, onKeyDown };
}

interface InputProps {
  readonly props: ComboboxProps;
  readonly list: ReturnType<typeof useList>;
}

function Input({ props, list }: InputProps) {
  const { id, input, isOpen, current, setShown, onKeyDown } = list;
  return (
    <input
      ref={input}
      id={props.id}
      role="combobox"
      aria-label={props.label}
      aria-expanded={isOpen}
      aria-controls={isOpen ? id : undefined}
      aria-autocomplete="list"
      aria-activedescendant={isOpen && current >= 0 ? optionId(id, current) : undefined}
      aria-invalid={props.isInvalid === true || undefined}
      aria-describedby={props.describedBy}
      data-first={props.form === "inline" || undefined}
      className={classes(style["input"], props.behind !== undefined && style["seeThrough"])}
      placeholder={props.placeholder}
      autoComplete="off"
      autoCapitalize="off"
      spellCheck={false}
      value={props.value}
      onInput={(event) => {
        setShown(true);
        props.onValue(event.currentTarget.value, event.currentTarget.selectionStart ?? 0);
      }}
      onBlur={() => setShown(false)}
      onClick={() => setShown(true)}
      onKeyDown={onKeyDown}
      onSelect={(event) => props.onCaret?.(event.currentTarget.selectionStart ?? 0)}
      onScroll={(event) => props.onScroll?.(event.currentTarget.scrollLeft)}
    />
  );
}

export function Combobox(props: ComboboxProps) {
  const { label, options, form, isMultiple = false, behind } = props;
  const list = useList(props);
  const { id, isOpen, current, input, pick } = list;
  const shown = isOpen && <Options {...{ id, label, options, current, isMultiple }} onPick={pick} />;
  return (
    <div className={classes(style["combobox"], style[form])}>
      <div className={style["field"]}>
        {behind}
        <Input props={props} list={list} />
      </div>
      {form === "popup" ? isOpen && <Panel anchor={input}>{shown}</Panel> : shown}
      {form === "inline" && options.length === 0 && props.whenEmpty}
    </div>
  );
}
