// The data of a chart as a table: a row for each bucket of time, the newest first.
import type { ChartLine } from "../../../design/LineChart";
import { clock, day, fullMoment } from "../../../lib/time";
import { preferences } from "../../../lib/preferences";
import { unitText } from "../series";
import type { Unit } from "../cards";
import style from "./Card.module.css";

interface DataTableProps {
  readonly label: string;
  readonly xs: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly unit: Unit;
}

export function DataTable({ label, xs, lines, unit }: DataTableProps) {
  const { zone } = preferences.value;
  const moment = (x: number): string => `${day(new Date(x), zone)} ${clock(new Date(x), zone).replace(/(?::00)?\.000$/, "")}`;
  return (
    <div className={style["scroll"]} tabIndex={0} role="region" aria-label={`Table of ${label}`}>
      <table className={style["table"]}>
        <caption className="only-spoken">{label}</caption>
        <thead>
          <tr>
            <th scope="col">From</th>
            {lines.map(({ name }) => (
              <th key={name} scope="col" className={style["number"]}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {xs
            .map((x, index) => (
              <tr key={x}>
                <th scope="row" title={fullMoment(new Date(x))}>
                  {moment(x)}
                </th>
                {lines.map(({ name, values }) => (
                  <td key={name} className={style["number"]}>
                    {unitText(values[index], unit)}
                  </td>
                ))}
              </tr>
            ))
            .reverse()}
        </tbody>
      </table>
    </div>
  );
}
