// The filter bar: one expression, shown as chips or as text.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { isAbort, problemOf } from "../../../lib/errors";
import {
  chipsOf,
  nameOf,
  withChanged,
  withChip,
  withoutChip,
  type Condition,
  type KnownField,
} from "../../../btql";
import { IconButton } from "../../../design/Button";
import { Icon } from "../../../design/Icon";
import { withKeys } from "../../../design/Kbd";
import { readyAll } from "../../../design/Lazily";
import { useOpener } from "../../../design/PopoverLogic";
import { useCommands, useLatest } from "../../../lib/commands";
import { isHeldBack, whenIdle } from "../../../lib/first";
import { announce } from "../../../lib/store";
import { ChipList } from "./ChipList";
import style from "./FilterBar.module.css";
import { FreeText } from "./FreeText";
import { ChipPopover, ExpressionLine, laterParts } from "./later";
import type { FilterBarProps } from "./props";
import { fieldsQuery, parse, type Fault } from "./queries";
import type { Scope } from "./scope";
import { useFilter, type Filter } from "./useFilter";

const NO_FIELDS: readonly KnownField[] = [];

interface ViewProps extends FilterBarProps {
  readonly filter: Filter;
  readonly fields: readonly KnownField[];
  /** Shows the filter as text, with a draft that differs from it. */
  readonly onText: (draft: string, fault: Fault | null) => void;
  readonly input: RefObject<HTMLInputElement | null>;
}

/** What the line of text holds: a line cannot have the breaks that a filter of an address may have. */
const oneLine = (text: string): string => text.replaceAll(/\s*[\r\n]+\s*/g, " ");

const failure = (error: unknown): Fault => ({
  message: `The filter could not be read. ${problemOf(error, Date.now()).text}`,
  column: null,
  offset: null,
});

interface AdderProps {
  readonly scope: Scope;
  readonly fields: readonly KnownField[];
  readonly onAdd: (condition: Condition) => void;
  /** The field with which it is to be opened; null if that is chosen there. */
  readonly field: KnownField | null;
  readonly editor: ReturnType<typeof useOpener>;
  readonly onClose: () => void;
}

/** The button that adds a condition, and its panel. */
function Adder({ scope, fields, onAdd, field, editor, onClose }: AdderProps) {
  const plus = useRef<HTMLSpanElement>(null);
  return (
    <>
      <span ref={plus} className={style["plus"]}>
        <IconButton {...editor.opener} icon="plus" label="Add a condition" />
      </span>
      {editor.isOpen && (
        <ChipPopover
          label="Add a condition"
          anchor={plus}
          onClose={onClose}
          scope={scope}
          fields={fields}
          before={null}
          field={field}
          onDone={(condition) => {
            onClose();
            onAdd(condition);
          }}
        />
      )}
    </>
  );
}

/** What can be done with the chips. */
function useChipActions({ scope, filter, onText }: ViewProps) {
  const { chips, set } = filter;
  const add = (condition: Condition): void => set(withChip(chips, condition, scope.shape));
  const remove = (index: number): void => {
    const chip = chips[index];
    if (chip === undefined) return;
    announce(`Removed ${nameOf(chip)}`);
    set(withoutChip(chips, index));
  };
  const addExpression = async (text: string): Promise<void> => {
    try {
      const parsed = await parse(scope.organization, text);
      if (parsed.kind === "read") set([...chips, ...chipsOf(parsed.tree, parsed.text)]);
      else onText(text, parsed.fault);
    } catch (error) {
      if (!isAbort(error)) onText(text, failure(error));
    }
  };
  return { add, remove, addExpression };
}

function ChipsView(props: ViewProps) {
  const { scope, filter, fields, onText, input } = props;
  const bar = useRef<HTMLDivElement>(null);
  const editor = useOpener();
  const [field, setField] = useState<KnownField | null>(null);
  const { chips, set } = filter;
  const { add, remove, addExpression } = useChipActions(props);
  const close = (): void => {
    editor.close();
    setField(null);
  };
  return (
    <div ref={bar} className={style["chips"]}>
      <ChipList
        {...{ scope, chips, fields }}
        isReading={filter.isReading}
        onChange={(index, condition) => set(withChanged(chips, index, condition))}
        onRemove={remove}
        onText={() => onText(scope.filter, null)}
        onLeave={() => input.current?.focus()}
      />
      <Adder {...{ scope, fields, field, editor }} onAdd={add} onClose={close} />
      <FreeText
        input={input}
        fields={fields}
        hasChips={chips.length > 0}
        onCondition={add}
        onField={(chosen) => {
          setField(chosen);
          editor.open();
        }}
        onExpression={(text) => void addExpression(text)}
        onRemoveLast={() => remove(chips.length - 1)}
        onBack={() => bar.current?.querySelector<HTMLElement>(`[data-chip="${chips.length - 1}"]`)?.focus()}
      />
    </div>
  );
}

interface Draft {
  readonly text: string;
  readonly fault: Fault | null;
}

/** The line of text, as long as it is shown: what is typed there, and whether the server can read it. */
function useDraft({ scope, onChange }: FilterBarProps, filter: Filter) {
  const [draft, setDraft] = useState<Draft | null>(null);
  const latest = useRef(scope.filter);
  useEffect(() => {
    if (latest.current === scope.filter) return;
    latest.current = scope.filter;
    setDraft((before) => (before === null ? null : { text: oneLine(scope.filter), fault: null }));
  }, [scope.filter]);
  const shown = draft ?? (filter.fault === null ? null : { text: oneLine(scope.filter), fault: filter.fault });
  const apply = async (then: "stay" | "close"): Promise<void> => {
    const text = shown?.text ?? "";
    try {
      const parsed = text.trim() === "" ? null : await parse(scope.organization, text);
      if (parsed?.kind === "fault") return setDraft({ text, fault: parsed.fault });
      const canonical = parsed?.text ?? "";
      latest.current = canonical;
      setDraft(then === "close" ? null : { text: canonical, fault: null });
      if (canonical !== scope.filter) onChange(canonical, "push");
    } catch (error) {
      if (!isAbort(error)) setDraft({ text, fault: failure(error) });
    }
  };
  const cancel = (): void => setDraft(null);
  return { shown, apply, cancel, set: setDraft };
}

interface ToolsProps {
  readonly isEmpty: boolean;
  readonly isText: boolean;
  readonly onClear: () => void;
  readonly onToggle: () => void;
}

function Tools({ isEmpty, isText, onClear, onToggle }: ToolsProps) {
  return (
    <span className={style["tools"]}>
      {!isEmpty && <IconButton icon="close" label="Clear the filter" onClick={onClear} />}
      <IconButton
        icon="code"
        label={isText ? "Show the filter as chips" : "Show the filter as text"}
        data-on={isText}
        onClick={onToggle}
      />
    </span>
  );
}

export function FilterBar(props: FilterBarProps) {
  const { scope } = props;
  const filter = useFilter(props);
  const found = useQuery({ ...fieldsQuery(scope), enabled: !isHeldBack.value });
  const fields = found.data ?? NO_FIELDS;
  const input = useRef<HTMLInputElement>(null);
  const draft = useDraft(props, filter);
  const isText = draft.shown !== null;
  const focus = useLatest(() => input.current?.focus());
  const commands = useMemo(
    () => [{ id: "filter.focus", title: "Filter", group: "Filter", keys: "/", run: () => focus() }],
    [focus],
  );
  useCommands(commands);
  useEffect(() => whenIdle(() => readyAll(laterParts)), []);
  const focusSoon = (): void => void window.setTimeout(focus);
  const showText = (text: string, fault: Fault | null): void => {
    void ExpressionLine.ready()
      .catch(() => undefined)
      .then(() => draft.set({ text: oneLine(text), fault }))
      .then(focusSoon);
  };
  const toggle = (): void => {
    if (isText) void draft.apply("close").then(focusSoon);
    else showText(scope.filter, null);
  };
  const clear = (): void => {
    draft.cancel();
    props.onChange("", "push");
    focusSoon();
  };
  return (
    <div className={style["bar"]} role="search" aria-label="Filter">
      <span className={style["icon"]} title={withKeys("Filter", "/")}>
        <Icon name="search" />
      </span>
      {draft.shown === null ? (
        <ChipsView {...props} {...{ filter, fields, input }} onText={showText} />
      ) : (
        <ExpressionLine
          input={input}
          value={draft.shown.text}
          fault={draft.shown.fault}
          fields={fields}
          onValue={(text) => draft.set({ text, fault: null })}
          onApply={() => void draft.apply("stay")}
          onCancel={() => {
            draft.cancel();
            focusSoon();
          }}
        />
      )}
      <Tools isEmpty={scope.filter === ""} isText={isText} onClear={clear} onToggle={toggle} />
    </div>
  );
}
