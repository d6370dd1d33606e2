// A facet of numbers: how they are distributed. A click on a bar filters by its range.
import { useQuery } from "@tanstack/react-query";
import { rangeChips, toggledChips } from "../../../btql";
import { classes } from "../../../design/classes";
import { Skeleton } from "../../../design/Skeleton";
import { exactCount } from "../../../lib/numbers";
import { rowWord } from "../filter/scope";
import style from "./Facets.module.css";
import { Failure } from "./Failure";
import { distributionQuery } from "./queries";
import type { FacetBodyProps } from "./Values";

const HEIGHT = 36;

const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4, useGrouping: false });

export function Numbers({ scope, chips, facet, set }: FacetBodyProps) {
  const read = useQuery(distributionQuery(scope, facet.field));
  if (read.error !== null && !read.isFetching) return <Failure error={read.error} onRetry={() => void read.refetch()} />;
  if (read.data === undefined) return <Skeleton lines={[[20], [20]]} />;
  if (read.data === null) return <p className={style["none"]}>No values</p>;
  const { low, high, mean, bars } = read.data;
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  return (
    <div className={classes(style["numbers"], read.isPlaceholderData && style["old"])} aria-busy={read.isPlaceholderData}>
      <div className={style["distribution"]} role="group" aria-label={`Distribution of ${facet.name}`}>
        {bars.map(({ from, to, count }) => {
          const words = `${short.format(from)} to ${short.format(to)}, ${exactCount(count)} ${rowWord(scope.shape, count)}`;
          const height = count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
          return (
            <button
              key={from}
              type="button"
              className={style["step"]}
              aria-label={words}
              title={`From ${words}`}
              disabled={count === 0}
              onClick={() => set(toggledChips(chips, rangeChips(chips, facet.field.path, from, to, scope.shape)))}
            >
              <span className={style["height"]} style={{ height: `${height}px` }} />
            </button>
          );
        })}
      </div>
      <p className={style["ends"]}>
        <span title="The smallest">{short.format(low)}</span>
        <span title="The mean">mean {short.format(mean)}</span>
        <span title="The largest">{short.format(high)}</span>
      </p>
    </div>
  );
}
