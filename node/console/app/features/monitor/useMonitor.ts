// The state of the monitor: the dashboard and what differs from it, and what all cards share.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Owner } from "../../api/monitor";
import { cache } from "../../api/queries";
import { useLatest } from "../../lib/commands";
import type { Extent } from "../../lib/buckets";
import { preferences } from "../../lib/preferences";
import { boundsOf, readRange, type Bounds } from "../../lib/range";
import { navigate } from "../../lib/router";
import { readVersion, sentVersion } from "../../lib/version";
import { allCards, readCards, writeCards, type Card } from "./cards";
import type { Dashboard } from "./dashboards";
import { extentQuery, groupsQuery, scoresQuery, type Plan, type Scope } from "./queries";
import {
  BUILT_IN,
  monitorUrl,
  overridden,
  settingsOf,
  type MonitorState,
  type Refresh,
  type Settings,
} from "./url";

export interface Changes {
  /** Changes some settings. A changed filter or range pushes an entry of the history. */
  readonly change: (changed: Partial<Settings>) => void;
  readonly onFilter: (filter: string, how: "push" | "replace") => void;
  readonly setRefresh: (refresh: Refresh) => void;
  readonly setVersion: (version: string) => void;
  /** Shows a dashboard as it is saved; null for the built-in one. */
  readonly open: (id: string | null) => void;
  /** Says that the dashboard holds what is shown, so that the address need not. */
  readonly settle: () => void;
  /** Takes back the last change of the settings, or does it again. */
  readonly undo: () => void;
  readonly redo: () => void;
}

/** The settings that were left, the newest last, so that changes can be taken back. */
function useHistory(settings: Settings, go: (settings: Settings) => void) {
  const key = JSON.stringify(settings);
  const left = useRef<{ past: readonly Settings[]; next: readonly Settings[]; shown: Settings; isStep: boolean }>({
    past: [],
    next: [],
    shown: settings,
    isStep: false,
  });
  useEffect(() => {
    const { past, shown, isStep } = left.current;
    if (JSON.stringify(shown) === key) return;
    left.current = isStep
      ? { ...left.current, shown: settings, isStep: false }
      : { past: [...past, shown].slice(-50), next: [], shown: settings, isStep: false };
  }, [key]);
  const undo = useLatest((): void => {
    const { past, next, shown } = left.current;
    const target = past.at(-1);
    if (target === undefined) return;
    left.current = { past: past.slice(0, -1), next: [...next, shown], shown, isStep: true };
    go(target);
  });
  const redo = useLatest((): void => {
    const { past, next, shown } = left.current;
    const target = next.at(-1);
    if (target === undefined) return;
    left.current = { past: [...past, shown], next: next.slice(0, -1), shown, isStep: true };
    go(target);
  });
  return { undo, redo };
}

export function useSettings(state: MonitorState, dashboard: Dashboard | null) {
  const base = dashboard?.settings ?? BUILT_IN;
  const overridesKey = JSON.stringify(state.overrides);
  const settings = useMemo(() => settingsOf(base, state.overrides), [base, overridesKey]);
  const set = (next: Settings, how: "push" | "replace"): void =>
    navigate(monitorUrl.write({ ...state, overrides: overridden(base, next) }), how);
  const change = useLatest((changed: Partial<Settings>): void => {
    const next = { ...settings, ...changed };
    set(next, next.filter !== settings.filter || next.range !== settings.range ? "push" : "replace");
  });
  const onFilter = useLatest((filter: string, how: "push" | "replace"): void => set({ ...settings, filter }, how));
  const setRefresh = useLatest((refresh: Refresh): void => navigate(monitorUrl.write({ ...state, refresh }), "replace"));
  const setVersion = useLatest((version: string): void => navigate(monitorUrl.write({ ...state, version }), "push"));
  const open = useLatest((id: string | null): void =>
    navigate(monitorUrl.write({ ...state, view: id ?? "", overrides: {} }), "push"),
  );
  const settle = useLatest((): void => navigate(monitorUrl.write({ ...state, overrides: {} }), "replace"));
  const { undo, redo } = useHistory(settings, (next) => set(next, "replace"));
  const changes: Changes = useMemo(
    () => ({ change, onFilter, setRefresh, setVersion, open, settle, undo, redo }),
    [change, onFilter, setRefresh, setVersion, open, settle, undo, redo],
  );
  return { base, settings, changes };
}

const REFRESH_MS: Readonly<Record<Refresh, number>> = { "": 0, "10s": 10_000, "1m": 60_000 };

/** The moment up to which is read. It moves on in the steps of the refresh, not while the page is hidden. */
export function usePresent(range: string, refresh: Refresh) {
  const [present, setPresent] = useState(() => Date.now());
  const anchored = useRef({ range, present });
  if (anchored.current.range !== range) anchored.current = { range, present: Date.now() };
  else if (anchored.current.present < present) anchored.current = { range, present };
  const again = useLatest((): void => {
    setPresent(Date.now());
    // A range that moves with time is read again by moving it.
    if (readRange(range)?.kind === "last") return;
    void cache.invalidateQueries({ predicate: ({ queryKey: [first] }) => typeof first === "string" && first.startsWith("monitor ") });
  });
  useEffect(() => {
    const every = REFRESH_MS[refresh];
    if (every === 0) return undefined;
    let last = Date.now();
    const step = (): void => {
      if (document.hidden || Date.now() - last < every - 50) return;
      last = Date.now();
      again();
    };
    const timer = window.setInterval(step, every);
    document.addEventListener("visibilitychange", step);
    return () => {
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", step);
    };
  }, [refresh, again]);
  return { present: anchored.current.present, again };
}

export function useScope({ organization, projectId }: Owner, settings: Settings, version: string, present: number): Scope {
  const { shape, filter, group, range } = settings;
  return useMemo(() => {
    const bounds = boundsOf(range, present);
    const sent = sentVersion(readVersion(version));
    return { organization, projectId, shape, filter, group: group.trim(), bounds, version: sent };
  }, [organization, projectId, shape, filter, group, range, version, present]);
}

const HOUR_MS = 3_600_000;

function extentOf({ from, to }: Bounds, present: number, known: Extent | null | undefined): Extent | null {
  const end = to === null ? present : Date.parse(to);
  if (from !== null) return { from: Date.parse(from), to: Math.max(end, Date.parse(from) + 1000) };
  if (known === undefined) return null;
  return { from: known?.from ?? end - HOUR_MS, to: to === null ? (known?.to ?? end) : end };
}

/** What all lines share; null until it is known. */
export function usePlan(scope: Scope, present: number) {
  const isUnbounded = scope.bounds.from === null;
  const extent = useQuery({ ...extentQuery(scope), enabled: isUnbounded });
  const groups = useQuery({ ...groupsQuery(scope), enabled: scope.group !== "" });
  const { zone } = preferences.value;
  const known = extentOf(scope.bounds, present, extent.isPlaceholderData ? undefined : extent.data);
  const isGrouped = scope.group !== "";
  const values = isGrouped ? (groups.isPlaceholderData ? undefined : groups.data) : null;
  const key = JSON.stringify([known, values]);
  const plan = useMemo((): Plan | null => {
    if (known === null || values === undefined) return null;
    return { scope, extent: known, groups: values, tzOffset: zone === "utc" ? 0 : new Date(known.to).getTimezoneOffset() };
  }, [scope, key, zone]);
  const error = (isUnbounded ? extent.error : null) ?? (isGrouped ? groups.error : null);
  const again = (): void => {
    if (isUnbounded) void extent.refetch();
    if (isGrouped) void groups.refetch();
  };
  return { plan, error, again };
}

/** The cards in their order. Without an arrangement these are all that there are. */
export function useCards(settings: Settings, scope: Scope, change: Changes["change"]) {
  const scores = useQuery(scoresQuery(scope)).data;
  const cards = useMemo(() => readCards(settings.cards), [settings.cards]);
  const all = useMemo(() => allCards(scores ?? []), [scores]);
  const arrange = useLatest((next: readonly Card[] | null): void => change({ cards: writeCards(next) }));
  return { cards: cards ?? all, all, arrange };
}
