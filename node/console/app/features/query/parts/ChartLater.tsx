// The chart of a result. Its code is loaded when the first chart is shown.
import { useEffect, useState, type ComponentType } from "react";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import type { ResultChartProps } from "./ResultChart";

let loaded: ComponentType<ResultChartProps> | null = null;

/** Starts to load the code, while the result is still being read. */
export async function loadChart(): Promise<ComponentType<ResultChartProps>> {
  loaded ??= (await import("./ResultChart")).ResultChart;
  return loaded;
}

export function ChartLater(props: ResultChartProps) {
  const [Shown, setShown] = useState<ComponentType<ResultChartProps> | null>(() => loaded);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    if (loaded !== null) return;
    loadChart().then(
      (component) => setShown(() => component),
      () => setFailed(true),
    );
  }, []);
  if (hasFailed) {
    return (
      <Empty action={<Button onClick={() => window.location.reload()}>Load again</Button>}>
        The code that draws charts could not be loaded.
      </Empty>
    );
  }
  return Shown === null ? null : <Shown {...props} />;
}
