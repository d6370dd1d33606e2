// How many values lie where: a bar for 0 and one for each tenth, and behind them the bars of what is compared with.
import { barsOf, distributionWords } from "./DistributionLogic";
import style from "./Distribution.module.css";

interface DistributionProps {
  readonly label: string;
  /** Counts of 0, and of each tenth up to 1. */
  readonly counts: readonly number[];
  /** The same of the base; absent if there is none. */
  readonly base?: readonly number[] | undefined;
}

const WIDTH = 8;
const GAP = 2;
const HEIGHT = 28;

/** The shares of all values are drawn, so that experiments of different sizes can be compared. */
export function Distribution({ label, counts, base }: DistributionProps) {
  const { own, other } = barsOf(counts, base ?? [], HEIGHT);
  const width = own.length * (WIDTH + GAP) - GAP;
  return (
    <svg
      className={style["distribution"]}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      width={width}
      height={HEIGHT}
      role="img"
      aria-label={`${label}: ${distributionWords(counts)}`}
    >
      {own.map((height, index) => (
        <g key={index}>
          <title>{`${index === 0 ? "0" : `${(index - 1) / 10} to ${index / 10}`}: ${counts[index] ?? 0}`}</title>
          <rect className={style["ground"]} x={index * (WIDTH + GAP)} y={0} width={WIDTH} height={HEIGHT} />
          <rect className={style["bar"]} x={index * (WIDTH + GAP)} y={HEIGHT - height} width={WIDTH} height={height} />
          {base !== undefined && (
            <rect
              className={style["base"]}
              x={index * (WIDTH + GAP)}
              y={Math.min(HEIGHT - 1.5, HEIGHT - (other[index] ?? 0))}
              width={WIDTH}
              height={1.5}
            />
          )}
        </g>
      ))}
      <line className={style["floor"]} x1={0} x2={width} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
    </svg>
  );
}
