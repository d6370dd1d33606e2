// One field of an explanation: values as pairs of bars, or numbers as two distributions one above the other.
import { path as pathText, type Scalar, type Step } from "../../../btql";
import { duration, money } from "../../../lib/numbers";
import { boundOf } from "./chips";
import style from "./FieldShown.module.css";
import { shareBelow, type NumberField, type Quantiles, type ValueField, type ValueShare } from "./ranking";

const percent = (share: number): string => `${share > 0 && share < 0.01 ? "<1" : Math.round(share * 100)} %`;

const points = (difference: number): string => `${difference < 0 ? "−" : "+"}${Math.round(Math.abs(difference) * 100)} points`;

const valueText = (value: Scalar): string => (value === "" ? '""' : String(value));

interface HeadProps {
  readonly path: readonly Step[];
  readonly difference: string;
  readonly title: string;
}

function FieldHead({ path, difference, title }: HeadProps) {
  return (
    <h3 className={style["fieldHead"]}>
      <span className={style["path"]}>{pathText(path)}</span>
      <span className={style["difference"]} title={title}>
        {difference}
      </span>
    </h3>
  );
}

/** A pair of bars on one scale. */
function Pair({ inside, outside }: Pick<ValueShare, "inside" | "outside">) {
  return (
    <svg className={style["pair"]} viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
      <rect className={style["ground"]} x={0} y={1} width={100} height={12} />
      <rect className={style["barInside"]} x={0} y={1} width={Math.max(0.5, inside * 100)} height={6} />
      <rect className={style["barOutside"]} x={0} y={7} width={Math.max(0.5, outside * 100)} height={6} />
    </svg>
  );
}

interface ValuesProps {
  readonly field: ValueField;
  readonly onValue: (value: Scalar) => void;
}

export function ValuesShown({ field, onValue }: ValuesProps) {
  const [first] = field.values;
  const signed = first === undefined ? 0 : first.inside - first.outside;
  return (
    <>
      <FieldHead path={field.path} difference={points(signed)} title="The largest difference of the shares, in percentage points" />
      <ul className={style["values"]}>
        {field.values.map(({ value, inside, outside, isAtMost }) => {
          const other = `${isAtMost ? "at most " : ""}${percent(outside)}`;
          const words = valueText(value);
          return (
            <li key={`${typeof value} ${words}`} className={style["value"]}>
              <button
                type="button"
                className={style["words"]}
                aria-label={`Filter by ${pathText(field.path)} ${words}: ${percent(inside)} of the selection, ${other} of the rest`}
                title={`Filter by ${words}`}
                onClick={() => onValue(value)}
              >
                {words}
              </button>
              <span className={style["shares"]} aria-hidden="true">
                <b>{percent(inside)}</b> <span className={style["rest"]}>{isAtMost ? `≤ ${percent(outside)}` : percent(outside)}</span>
              </span>
              <Pair inside={inside} outside={outside} />
            </li>
          );
        })}
      </ul>
    </>
  );
}

const plain = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

const SECONDS: ReadonlySet<unknown> = new Set(["duration", "time_to_first_token", "llm_duration"]);

function numberText(path: readonly Step[], number: number): string {
  if (path[0] !== "metrics") return plain.format(number);
  if (SECONDS.has(path[1])) return duration(number * 1000);
  return path[1] === "estimated_cost" ? money(number) : plain.format(number);
}

const STEPS = 24;
const HEIGHT = 22;

/** The shares of the numbers in equal steps from one number to another, as far as quantiles tell. */
function stepsOf(quantiles: Quantiles, from: number, to: number): readonly number[] {
  const edge = (index: number): number => from + ((to - from) * index) / STEPS;
  return Array.from({ length: STEPS }, (_, index) => {
    const low = index === 0 ? 0 : shareBelow(quantiles, edge(index));
    return Math.max(0, shareBelow(quantiles, edge(index + 1)) - low);
  });
}

const medianOf = (quantiles: Quantiles): number => quantiles[Math.floor(quantiles.length / 2)] ?? 0;

interface DrawnExtent {
  readonly from: number;
  readonly to: number;
}

/** What is drawn. The last tenth of a group may reach far, and would leave no room for the others. */
function extentOf({ inside, outside }: NumberField): DrawnExtent {
  const from = Math.min(inside[0] ?? 0, outside[0] ?? 0);
  return { from, to: Math.max(inside.at(-2) ?? 0, outside.at(-2) ?? 0, from + Number.EPSILON) };
}

function Distributions({ field, extent: { from, to } }: { readonly field: NumberField; readonly extent: DrawnExtent }) {
  const { inside, outside } = field;
  const own = stepsOf(inside, from, to);
  const others = stepsOf(outside, from, to);
  const most = Math.max(...own, ...others, 0.001);
  const width = 100 / STEPS;
  const heightOf = (share: number): number => (share / most) * (HEIGHT - 1);
  return (
    <svg className={style["distributions"]} viewBox={`0 0 100 ${2 * HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {own.map((share, index) => (
        <rect key={`i${index}`} className={style["barInside"]} x={index * width} width={width * 0.85} y={HEIGHT - heightOf(share)} height={heightOf(share)} />
      ))}
      {others.map((share, index) => (
        <rect key={`o${index}`} className={style["barOutside"]} x={index * width} width={width * 0.85} y={HEIGHT} height={heightOf(share)} />
      ))}
      <line className={style["middle"]} x1={0} x2={100} y1={HEIGHT} y2={HEIGHT} />
    </svg>
  );
}

interface NumbersProps {
  readonly field: NumberField;
  readonly onFilter: () => void;
}

export function NumbersShown({ field, onFilter }: NumbersProps) {
  const { path, inside, outside } = field;
  const [own, other] = [medianOf(inside), medianOf(outside)];
  const { sign, bound } = boundOf(field);
  const extent = extentOf(field);
  const chip = `${pathText(path)} ${sign} ${numberText(path, bound)}`;
  const words = `median ${numberText(path, own)} in the selection, ${numberText(path, other)} in the rest`;
  return (
    <>
      <FieldHead
        path={path}
        difference={points(own < other ? -field.difference : field.difference)}
        title="The largest distance of the distributions, in percentage points"
      />
      <div className={style["numbers"]}>
        <button
          type="button"
          className={style["whole"]}
          aria-label={`Filter by ${chip}: ${words}`}
          title={`Filter by ${chip}`}
          onClick={onFilter}
        />
        <Distributions field={field} extent={extent} />
        <span className={style["scale"]} aria-hidden="true">
          <span>{numberText(path, extent.from)}</span>
          <span className={style["shares"]}>
            median <b>{numberText(path, own)}</b> <span className={style["rest"]}>{numberText(path, other)}</span>
          </span>
          <span title="A tenth of the numbers may be greater.">{numberText(path, extent.to)}</span>
        </span>
      </div>
    </>
  );
}
