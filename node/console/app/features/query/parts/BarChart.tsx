// Bars from left to right, one for each row, with its name and its value in words.
import { tickText, valueText } from "../../../design/LineChartLogic";
import type { Bar } from "../chart";
import style from "./BarChart.module.css";

interface BarChartProps {
  readonly label: string;
  readonly bars: readonly Bar[];
  /** The size that fills the width. */
  readonly most: number;
}

export function BarChart({ label, bars, most }: BarChartProps) {
  return (
    <ul className={style["bars"]} aria-label={label} tabIndex={0}>
      {bars.map(({ name, value }, index) => {
        const share = most === 0 || value === null ? 0 : (Math.abs(value) / most) * 100;
        return (
          <li key={index} className={style["bar"]} title={`${name}: ${valueText(value)}`}>
            <span className={style["name"]}>{name}</span>
            <svg className={style["track"]} preserveAspectRatio="none" viewBox="0 0 100 1" aria-hidden="true">
              <rect className={value !== null && value < 0 ? style["below"] : style["above"]} width={share} height="1" />
            </svg>
            <span className={style["value"]}>{value === null ? valueText(null) : tickText(value)}</span>
          </li>
        );
      })}
    </ul>
  );
}
