// The state of the comparison, what is read for it, and what can be done.
import { useEffect, useMemo, useState } from "react";
import type { Compared, Pair } from "../../api/comparison";
import type { Experiment } from "../../api/experiments";
import type { NamedProject } from "../../api/schema";
import { toast } from "../../design/Toast";
import { problemOf } from "../../lib/errors";
import { copyText } from "../../lib/clipboard";
import { useCommands, useLatest } from "../../lib/commands";
import { exactCount } from "../../lib/numbers";
import { announce } from "../../lib/store";
import { compareCommands } from "./commands";
import { ADD_ID, FILTER_ID, GROUP_ID } from "./ids";
import type { Judge } from "./judgements";
import { markdownOf } from "./markdown";
import { findPairOfKey } from "./queries";
import type { CompareScreenProps } from "./screen";
import { compareDefaults, type CompareState } from "./url";
import { useGo } from "./useAddress";
import { useCompared } from "./useCompared";
import { useRows } from "./useRows";
import { useStatistics } from "./useStatistics";
import { useUndo } from "./useUndo";

type Read = ReturnType<typeof useCompared>;

export interface CompareProps extends CompareScreenProps {
  readonly project: NamedProject;
  readonly main: Experiment;
  /** What it is compared with; the first is the base. */
  readonly others: readonly Experiment[];
  /** What of the address names no experiment. */
  readonly unknown: readonly string[];
}

async function copyMarkdown(compared: Compared | undefined, judge: Judge): Promise<void> {
  if (compared === undefined) return;
  const isDone = await copyText(markdownOf(compared, judge, window.location.href));
  toast(isDone ? "The comparison is copied as a Markdown table." : "The browser refused to copy.", !isDone);
}

/** The actions of the screen that concern no single row. */
function useActions(props: CompareProps) {
  const { state, main } = props;
  const go = useGo(state, props.project.id);
  const change = useLatest((part: Partial<CompareState>) => {
    const isOpening = part.row !== undefined && part.row !== "" && state.row === "";
    go({ ...state, ...part }, isOpening || part.version !== undefined ? "push" : "stay");
  });
  const onCompared = useLatest((names: readonly string[]) => {
    go({ ...state, compared: names, isAlone: names.length === 0, row: "", span: "" }, "push");
  });
  const onLook = useLatest((name: string, others: readonly string[]) => {
    const { organization, project, layout, isDiff, group, filter, view, version } = state;
    const start = compareDefaults(organization, project, name);
    go({ ...start, layout, isDiff, group, filter, view, version, compared: others, isAlone: others.length === 0 }, "push");
  });
  const swap = useLatest(() => {
    const [base, ...rest] = props.others.map(({ name }) => name);
    if (base !== undefined) onLook(base, [main.name, ...rest]);
  });
  return { change, onCompared, onLook, swap };
}

/** Opens the pair of a comparison key, which may not be among the pairs that are read so far. */
async function openKey(organization: string, { pairs, request }: Read, key: string, open: (pair: Pair) => void): Promise<void> {
  try {
    const pair = pairs.find((one) => one.key === key) ?? (await findPairOfKey(organization, request, key));
    if (pair === null) toast("No compared experiment has a row of this input any more.", true);
    else open(pair);
  } catch (error) {
    toast(`The row was not found. ${problemOf(error, 0).text}`, true);
  }
}

/** The dialogs of the screen. */
type Opened = "none" | "version" | "key";

export function useScreen(props: CompareProps) {
  const { state, main, others } = props;
  const actions = useActions(props);
  const { change } = actions;
  const experiments = useMemo(() => [main, ...others], [main, others]);
  const read = useCompared(state, experiments);
  const { compared, pairs } = read;
  const score = state.score === "" ? (Object.keys(compared?.experiments[0]?.scores ?? {}).sort()[0] ?? "") : state.score;
  const rows = useRows({ state, pairs, change });
  const undo = useUndo(state, change);
  const judging = useStatistics(state, experiments, read.isOld);
  const copy = useLatest(() => void copyMarkdown(compared, judging.judge));
  const onKey = useLatest((key: string) => void openKey(state.organization, read, key, rows.openPair));
  const toggleDiff = useLatest(() => change({ isDiff: !state.isDiff }));
  const hasBase = others.length > 0;
  const isOpen = state.row !== "";
  const isPast = state.version !== "";
  const [opened, setOpened] = useState<Opened>("none");
  const hasFilterLine = props.FilterBar === null;
  const hasRows = pairs.length > 0 && state.layout !== "summary";
  const commands = useMemo(
    () =>
      compareCommands({
        ...rows.actions,
        ...undo,
        toggleDiff,
        layout: (layout) => change({ layout }),
        focusFilter: () => document.getElementById(FILTER_ID)?.focus(),
        group: () => document.getElementById(GROUP_ID)?.click(),
        add: () => document.getElementById(ADD_ID)?.click(),
        swap: actions.swap,
        changeKey: () => setOpened("key"),
        changeVersion: () => setOpened("version"),
        isPast: () => isPast,
        hasFilterLine: () => hasFilterLine,
        copyMarkdown: copy,
        hasRows: () => hasRows,
        isOpen: () => isOpen,
        hasBase: () => hasBase,
      }),
    [rows.grid, change, toggleDiff, copy, hasRows, isOpen, isPast, hasBase, hasFilterLine],
  );
  useCommands(commands);
  const total = compared?.total;
  useEffect(() => {
    if (total !== undefined && !read.isOld) announce(total === 1 ? "1 row" : `${exactCount(total)} rows`);
  }, [total, read.isOld, read.request]);
  return { ...actions, read, judging, score, rows, copy, onKey, hasBase, opened, setOpened };
}

export type Screen = ReturnType<typeof useScreen>;
