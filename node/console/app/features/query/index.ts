// What of the query editor other parts of the console use.
export { queryDefaults, queryUrl, type QueryState } from "./url";
