// The histogram of rows over time.
export { Histogram } from "./Histogram";
export type { HistogramProps } from "./props";
