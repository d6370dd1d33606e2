// A table inside a longer page: as high as its rows, up to most of the window, where it scrolls by itself.
import { Grid } from "./Grid";
import type { GridProps } from "./GridTypes";
import style from "./SectionPage.module.css";

export function SectionGrid<Row>(props: GridProps<Row>) {
  const rows = props.rows.length;
  return (
    <div className={style["grid"]} style={{ height: `calc(${rows} * var(--row) + 1.75rem + ${rows > 0 ? 16 : 0}px)` }}>
      <Grid {...props} isSelectable={false} />
    </div>
  );
}
