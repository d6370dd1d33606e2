// What of the logs other parts of the console use.
export { prefetchLogs, prefetchProject } from "./prefetch";
export { logsDefaults, logsUrl, type LogsState } from "./url";
