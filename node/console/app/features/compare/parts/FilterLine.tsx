// The filter of the comparison as an expression in one line, with what the server finds wrong in it.
import { useEffect, useState, type KeyboardEvent } from "react";
import { Icon } from "../../../design/Icon";
import { FILTER_ID } from "../ids";
import style from "./Toolbar.module.css";

interface FilterLineProps {
  readonly filter: string;
  /** What is wrong with the filter; null if nothing is. */
  readonly fault: string | null;
  readonly onFilter: (filter: string) => void;
}

export function FilterLine({ filter, fault, onFilter }: FilterLineProps) {
  const [text, setText] = useState(filter);
  useEffect(() => setText(filter), [filter]);
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    if (event.key === "Enter") onFilter(text.trim());
    else if (event.key === "Escape") {
      setText(filter);
      event.currentTarget.blur();
    }
  };
  return (
    <div>
      <label className={style["filter"]}>
        <Icon name="filter" />
        <span className="only-spoken">Filter the rows by an expression</span>
        <input
          id={FILTER_ID}
          type="text"
          placeholder="Filter, such as metadata.lang = 'de'"
          autoComplete="off"
          spellCheck={false}
          value={text}
          aria-invalid={fault !== null}
          aria-describedby={fault === null ? undefined : "compare-fault"}
          onInput={(event) => setText(event.currentTarget.value)}
          onBlur={() => onFilter(text.trim())}
          onKeyDown={onKeyDown}
        />
      </label>
      {fault !== null && (
        <p id="compare-fault" className={style["fault"]} role="alert">
          {fault}
        </p>
      )}
    </div>
  );
}
