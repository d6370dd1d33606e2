// The result as a chart: lines over time, or bars, with the columns of its axes to choose.
import { useMemo } from "react";
import { Empty } from "../../../design/Empty";
import { LineChart } from "../../../design/LineChart";
import { exactCount } from "../../../lib/numbers";
import { kindOf } from "../cells";
import { barsOf, chosenAxes, linesOf, writeAxes, type ChartAxes, type ChartColumn } from "../chart";
import type { Ran } from "../runner";
import { BarChart } from "./BarChart";
import style from "./ResultChart.module.css";

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, title: string])[];
  readonly onChoose: (value: string) => void;
}

function Choice({ label, value, options, onChoose }: ChoiceProps) {
  return (
    <label className={style["choice"]}>
      <span>{label}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([one, title]) => (
          <option key={one} value={one}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

interface AxesProps {
  readonly axes: ChartAxes;
  readonly columns: readonly ChartColumn[];
  readonly onAxes: (axes: ChartAxes) => void;
}

function Axes({ axes, columns, onAxes }: AxesProps) {
  const names = columns.map(({ name }) => [name, name] as const);
  const numbers = columns.filter(({ kind }) => kind === "number").map(({ name }) => name);
  const toggle = (name: string): void => {
    const y = axes.y.includes(name) ? axes.y.filter((one) => one !== name) : [...axes.y, name];
    if (y.length > 0) onAxes({ ...axes, y });
  };
  return (
    <div className={style["axes"]} role="group" aria-label="Axes of the chart">
      <Choice
        label="Chart"
        value={axes.kind}
        options={[
          ["line", "Lines"],
          ["bars", "Bars"],
        ]}
        onChoose={(kind) => onAxes({ ...axes, kind: kind === "bars" ? "bars" : "line", y: kind === "bars" ? axes.y.slice(0, 1) : axes.y })}
      />
      <Choice label={axes.kind === "line" ? "Along" : "Bar of"} value={axes.x} options={names} onChoose={(x) => onAxes({ ...axes, x })} />
      {axes.kind === "bars" ? (
        <Choice
          label="Length"
          value={axes.y[0] ?? ""}
          options={numbers.map((name) => [name, name])}
          onChoose={(name) => onAxes({ ...axes, y: [name] })}
        />
      ) : (
        <>
          <fieldset className={style["values"]}>
            <legend className={style["legend"]}>Values</legend>
            {numbers
              .filter((name) => name !== axes.x)
              .map((name) => (
                <label key={name} className={style["check"]}>
                  <input type="checkbox" checked={axes.y.includes(name)} onChange={() => toggle(name)} />
                  {name}
                </label>
              ))}
          </fieldset>
          <Choice
            label="A line for each"
            value={axes.by}
            options={[["", "value"], ...names.filter(([name]) => name !== axes.x && !axes.y.includes(name))]}
            onChoose={(by) => onAxes({ ...axes, by })}
          />
        </>
      )}
    </div>
  );
}

interface DrawnProps {
  readonly ran: Ran;
  readonly axes: ChartAxes;
  readonly isTime: boolean;
}

function Lines({ ran, axes, isTime }: DrawnProps) {
  const key = writeAxes(axes);
  const { xs, lines, total } = useMemo(() => linesOf(ran.rows, axes), [ran.rows, key]);
  if (xs.length === 0) return <Empty>No row has a time or a number in the column {axes.x}.</Empty>;
  return (
    <>
      <div className={style["drawn"]}>
        <LineChart label={`${axes.y.join(", ")} along ${axes.x}`} xs={xs} isTime={isTime} lines={lines} />
      </div>
      {total > lines.length && (
        <p className={style["note"]}>
          These are the {lines.length} largest of {exactCount(total)} lines.
        </p>
      )}
    </>
  );
}

function Bars({ ran, axes }: DrawnProps) {
  const key = writeAxes(axes);
  const bars = useMemo(() => barsOf(ran.rows, axes), [ran.rows, key]);
  return (
    <>
      <div className={style["drawn"]}>
        <BarChart label={`${axes.y[0] ?? ""} by ${axes.x}`} {...bars} />
      </div>
      {bars.total > bars.bars.length && (
        <p className={style["note"]}>
          These are the first {bars.bars.length} of {exactCount(bars.total)} rows.
        </p>
      )}
    </>
  );
}

export interface ResultChartProps {
  readonly ran: Ran;
  readonly chart: string;
  readonly onChart: (chart: string) => void;
}

export function ResultChart({ ran, chart, onChart }: ResultChartProps) {
  const { rows, result } = ran;
  const columns = useMemo(
    () => result.columns.map((name) => ({ name, kind: kindOf(name, result.schema[name], rows.slice(0, 200)) })),
    [result],
  );
  const axes = chosenAxes(chart, columns);
  if (rows.length === 0) return <Empty>The query found no rows to draw.</Empty>;
  if (axes === null) {
    return <Empty>A chart needs a column of numbers, and a column of times or texts to draw them by.</Empty>;
  }
  const isTime = columns.some(({ name, kind }) => name === axes.x && kind === "moment");
  const onAxes = (next: ChartAxes): void => onChart(writeAxes(next));
  return (
    <div className={style["chart"]}>
      <Axes axes={axes} columns={columns} onAxes={onAxes} />
      {axes.kind === "line" ? <Lines {...{ ran, axes, isTime }} /> : <Bars {...{ ran, axes, isTime }} />}
    </div>
  );
}
