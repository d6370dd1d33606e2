// The line that searches and filters the rows of a dataset.
import { useEffect, useState } from "react";
import { Icon } from "../../../design/Icon";
import { filterOfTyped, typedOfFilter } from "../finding";
import { FILTER_ID } from "../useDesk";
import style from "./Dataset.module.css";

interface FilterBoxProps {
  readonly filter: string;
  /** What is wrong with the expression; null if nothing is. */
  readonly fault: string | null;
  readonly onFilter: (filter: string) => void;
}

export function FilterBox({ filter, fault, onFilter }: FilterBoxProps) {
  const [typed, setTyped] = useState(() => typedOfFilter(filter));
  useEffect(() => {
    if (filterOfTyped(typed) !== filter) setTyped(typedOfFilter(filter));
  }, [filter]);
  const take = (text: string): void => {
    if (filterOfTyped(text) !== filter) onFilter(filterOfTyped(text));
  };
  return (
    <div className={style["filterBox"]}>
      <label className={style["filter"]}>
        <Icon name="search" />
        <span className="only-spoken">Search the rows, or filter them by an expression</span>
        <input
          id={FILTER_ID}
          type="search"
          placeholder="Search, or metadata.level = 2"
          autoComplete="off"
          spellCheck={false}
          aria-invalid={fault !== null}
          aria-describedby="dataset-filter-fault"
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
            if (event.currentTarget.value === "") take("");
          }}
          onBlur={() => take(typed)}
          onKeyDown={(event) => {
            if (event.key === "Enter") take(typed);
            else if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
      </label>
      <p id="dataset-filter-fault" className={style["filterFault"]} role="alert">
        {fault}
      </p>
    </div>
  );
}
