// The screens of a project. They hand each other's parts over, because features do not know each other.
import { useEffect } from "react";
import type { Session } from "../api/schema";
import type { CompareState } from "../features/compare";
import type { LogsState } from "../features/logs";
import type { MonitorState } from "../features/monitor";
import type { TraceState } from "../features/trace";
import { navigate } from "../lib/router";
import { links, type ProjectState } from "../routes";
import { failed, later } from "./later";

const Compare = later(async () => (await import("../features/compare/screen")).CompareScreen, failed);
const FilterBar = later(async () => (await import("../features/logs/filter")).FilterBar, failed);
const Logs = later(async () => (await import("../features/logs/screen")).LogsScreen, failed);
const Monitor = later(async () => (await import("../features/monitor/screen")).MonitorScreen, failed);
const Trace = later(async () => (await import("../features/trace/screen")).TraceScreen, failed);
const TracePanel = later(async () => (await import("../features/trace/panel")).TracePanel, failed);

/** The address of a project alone leads to its logs. */
export function ToLogs({ organization, project }: ProjectState) {
  useEffect(() => navigate(links.logs(organization, project), "replace"), [organization, project]);
  return null;
}

export function LogsPlace({ state, session }: { readonly state: LogsState; readonly session: Session }) {
  return <Logs state={state} userId={session.user.id} TracePanel={TracePanel} />;
}

export function TracePlace({ state }: { readonly state: TraceState }) {
  return <Trace key={state.root} state={state} />;
}

export function MonitorPlace({ state }: { readonly state: MonitorState }) {
  return <Monitor state={state} FilterBar={FilterBar} />;
}

export function ComparePlace({ state }: { readonly state: CompareState }) {
  return <Compare state={state} TracePanel={TracePanel} FilterBar={FilterBar} />;
}
