// What model calls took in a range: a chart by day, and the sums of models.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import { Empty } from "../../../design/Empty";
import { lazily } from "../../../design/Lazily";
import { Loaded } from "../../../design/Loaded";
import { Meter } from "../../../design/Meter";
import { Skeleton } from "../../../design/Skeleton";
import { TimeRange } from "../../../design/TimeRange";
import { exactCount, money, shortCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { navigate } from "../../../lib/router";
import { spendingQuery, type ReadSpending } from "../queries";
import style from "../section.module.css";
import { tokensOf, type ModelSum } from "../spending";
import { shareOf } from "../stored";
import { MEASURES, writeUsageState, type Measure, type UsageState } from "../url";

const LineChart = lazily(async () => (await import("../../../design/LineChart")).LineChart);

const TITLES: Readonly<Record<Measure, string>> = { cost: "Cost", tokens: "Tokens" };

function ModelRow({ sum, total, measure }: { readonly sum: ModelSum; readonly total: ModelSum; readonly measure: Measure }) {
  const share = measure === "cost" ? shareOf(sum.cost ?? 0, total.cost) : shareOf(tokensOf(sum), tokensOf(total));
  return (
    <tr>
      <th scope="row" className={style["name"]} title={sum.name}>{sum.name}</th>
      <td className={style["number"]} title={exactCount(sum.calls)}>{shortCount(sum.calls)}</td>
      <td className={style["number"]} title={exactCount(sum.prompt)}>{shortCount(sum.prompt)}</td>
      <td className={style["number"]} title={exactCount(sum.completion)}>{shortCount(sum.completion)}</td>
      <td className={style["number"]} title={sum.cost === null ? "This model has no price." : undefined}>{money(sum.cost)}</td>
      <td className={style["share"]}><Meter share={share} /></td>
    </tr>
  );
}

function Models({ spending, measure }: { readonly spending: ReadSpending; readonly measure: Measure }) {
  return (
    <div className={style["scroll"]} tabIndex={0} role="region" aria-label="Spending by model">
      <table className={style["table"]}>
        <caption className="only-spoken">Spending by model</caption>
        <thead>
          <tr>
            <th scope="col">Model</th>
            {["Calls", "Prompt tokens", "Completion tokens", "Cost"].map((title) => (
              <th key={title} scope="col" className={style["number"]}>{title}</th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {[...spending.models, ...(spending.models.length > 1 ? [spending.total] : [])].map((sum) => (
            <ModelRow key={sum.name} sum={sum} total={spending.total} measure={measure} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Chart({ spending, measure }: { readonly spending: ReadSpending; readonly measure: Measure }) {
  const lines = spending[measure];
  const format = (value: number | null | undefined): string => (measure === "cost" ? money(value ?? null) : exactCount(value ?? null));
  if (lines.length === 0) return <p className={style["lead"]}>No call of this range has a price.</p>;
  return (
    <div className={style["chart"]}>
      <LineChart label={TITLES[measure]} isTime xs={spending.xs} lines={lines} format={format} tick={measure === "cost" ? money : shortCount} />
    </div>
  );
}

export function Spending({ state }: { readonly state: UsageState }) {
  const tzOffset = preferences.value.zone === "utc" ? 0 : new Date().getTimezoneOffset();
  const query = useQuery(spendingQuery(state.organization, state.range, tzOffset));
  const { measure } = state;
  const set = (changed: Partial<UsageState>): void => navigate(writeUsageState({ ...state, ...changed }), "replace");
  return (
    <section className={style["part"]} aria-label="Model calls">
      <div className={style["head"]}>
        <h2>Model calls</h2>
        <label className={style["inline"]}>
          Show
          <select value={measure} onChange={({ currentTarget }) => set({ measure: MEASURES.find((one) => one === currentTarget.value) ?? "cost" })}>
            {MEASURES.map((one) => (
              <option key={one} value={one}>{TITLES[one]}</option>
            ))}
          </select>
        </label>
        <TimeRange value={state.range} onChange={(range) => set({ range })} />
      </div>
      <Loaded
        reading={readingOf(query)}
        skeleton={<Skeleton lines={[[60], [24, 6, 6, 6], [20, 6, 6, 6]]} />}
        onSignIn={() => void askToSignIn().then(() => query.refetch())}
      >
        {(spending) =>
          spending.models.length === 0 ? (
            <Empty>No model was called in this range.</Empty>
          ) : (
            <div className={style["part"]}>
              <Chart spending={spending} measure={measure} />
              <Models spending={spending} measure={measure} />
              {spending.isCut && <p className={style["said"]}>This range has more days and models than are read at once. The newest are shown.</p>}
            </div>
          )
        }
      </Loaded>
    </section>
  );
}
