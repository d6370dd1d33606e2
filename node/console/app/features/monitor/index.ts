// The monitor of a project: cards over time, and dashboards of them.
export { monitorDefaults, monitorUrl, type MonitorState } from "./url";
