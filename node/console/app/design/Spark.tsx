// A small line of one number over a few things, each of which is a link.
import { classes } from "./classes";
import { linePath, placedPoints, type SparkPoint } from "./SparkLogic";
import style from "./Spark.module.css";

export type { SparkPoint } from "./SparkLogic";

interface SparkProps {
  readonly label: string;
  readonly points: readonly SparkPoint[];
  /** The point that stands out. */
  readonly current: string | null;
  readonly href: (id: string) => string;
  /** What a point is, for its tooltip. */
  readonly title: (id: string, value: number) => string;
  /** Called when the pointer enters a point, and with null when it leaves. */
  readonly onPoint?: (id: string | null) => void;
}

export function Spark({ label, points, current, href, title, onPoint }: SparkProps) {
  const placed = placedPoints(points);
  return (
    <div className={style["spark"]} role="group" aria-label={label}>
      <svg className={style["line"]} viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
        <path d={linePath(placed)} />
      </svg>
      {placed.map(({ id, x, y, value }) => (
        <a
          key={id}
          href={href(id)}
          tabIndex={-1}
          className={classes(style["point"], id === current && style["current"])}
          style={{ left: `${x}%`, top: `${y}%` }}
          title={title(id, value)}
          aria-label={title(id, value)}
          onPointerEnter={() => onPoint?.(id)}
          onPointerLeave={() => onPoint?.(null)}
        />
      ))}
    </div>
  );
}
