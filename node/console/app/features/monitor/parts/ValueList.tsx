// The most frequent values of a field as bars. Each leads to the logs that have it.
import { isRecord } from "../../../api/narrow";
import { exactCount, money } from "../../../lib/numbers";
import type { Card } from "../cards";
import { listedPath, type ListedValue } from "../queries";
import style from "./Card.module.css";

interface ValueListProps {
  readonly card: Card;
  readonly label: string;
  readonly values: readonly ListedValue[];
  /** The address of the logs that have a value. */
  readonly hrefOf: (value: unknown) => string;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The message of an error that is an object, as SDKs send it; else the whole value. */
const lineOf = (value: unknown): string =>
  isRecord(value) && typeof value["message"] === "string" && value["message"] !== "" ? value["message"] : textOf(value);

export function ValueList({ card, label, values, hrefOf }: ValueListProps) {
  const most = Math.max(1, ...values.map(({ count }) => count));
  const isOfModels = listedPath(card)[0] === "metadata";
  return (
    <ol className={style["values"]} aria-label={label}>
      {values.map(({ value, count, more }) => {
        const words = textOf(value);
        return (
          <li key={words}>
            <a href={hrefOf(value)} className={style["value"]} title={words}>
              <svg className={style["share"]} viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
                <rect className={isOfModels ? style["good"] : style["bad"]} width={(count / most) * 100} height={1} />
              </svg>
              <span className={style["words"]}>{lineOf(value)}</span>
              {isOfModels && more !== null && <span className={style["more"]}>{money(more)}</span>}
              <span className={style["count"]}>
                {exactCount(count)}
                <span className="only-spoken"> {count === 1 ? "span" : "spans"}</span>
              </span>
            </a>
          </li>
        );
      })}
    </ol>
  );
}
