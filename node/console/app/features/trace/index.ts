// What of the trace other parts of the console use.
export { traceDefaults, traceUrl, type TraceState } from "./url";
