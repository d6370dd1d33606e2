// What of the comparison other parts of the console use.
export { prefetchComparison } from "./queries";
export { compareDefaults, compareUrl, type CompareState } from "./url";
