// The conversation of an agent's run: its calls of models and tools in the order of time.
import { useQueries, type UseQueryResult } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { FailureLine } from "../../../design/FailureLine";
import { problemOf } from "../../../lib/errors";
import { duration } from "../../../lib/numbers";
import { Conversation } from "../detail/Conversation";
import type { Message } from "../messages/forms";
import { messagesOf, sharedStart } from "../messages/messages";
import { spanQuery } from "../queries";
import type { TraceTree } from "../tree/model";
import type { OpenTrace } from "../useTrace";
import { SpanIcon } from "./SpanIcon";
import style from "./Thread.module.css";

const STEPS = 20;

/** The spans that the thread shows: calls of models and of tools, without those that only wrap others. */
function stepsOf(tree: TraceTree): readonly number[] {
  const steps = [...tree.order].filter((index) => ["llm", "tool"].includes(tree.spans[index]?.type ?? ""));
  return steps.sort((one, other) => (tree.begin[one] ?? 0) - (tree.begin[other] ?? 0));
}

interface Read {
  readonly input: unknown;
  readonly output: unknown;
}

/**
 * Returns how many messages of each step's input were shown before: those of the call before, and what tools returned
 * since, if the tools are steps of their own.
 */
function foldedOf(reads: readonly (Read | null | undefined)[], types: readonly string[]): readonly number[] {
  let before: readonly Message[] = [];
  let hasTools = false;
  return reads.map((read, index) => {
    if (types[index] === "tool") {
      hasTools = true;
      return 0;
    }
    const input = messagesOf(read?.input);
    if (input === null) return 0;
    let shared = sharedStart(before, input);
    while (hasTools && shared > 0 && input[shared]?.role === "tool") shared += 1;
    before = [...input, ...(messagesOf(read?.output) ?? [])];
    hasTools = false;
    return shared;
  });
}

function Step({ trace, tree, span, read, failed, shared }: {
  readonly trace: OpenTrace;
  readonly tree: TraceTree;
  readonly span: number;
  readonly read: Read | null | undefined;
  readonly failed: Failed;
  readonly shared: number;
}) {
  const head = tree.spans[span];
  const input = messagesOf(read?.input);
  const output = messagesOf(read?.output);
  const asMessage = (role: string, value: unknown): readonly Message[] => [
    { role, name: "", parts: typeof value === "string" ? [{ kind: "text", text: value }] : [{ kind: "other", value }] },
  ];
  const given = read === undefined || read === null || read.input == null ? [] : (input ?? asMessage("Input", read.input));
  const returned = read === undefined || read === null || read.output == null ? [] : (output ?? asMessage("Output", read.output));
  return (
    <li className={style["step"]}>
      <Button look="quiet" aria-pressed={span === trace.selected} onClick={() => trace.select(span)}>
        <SpanIcon type={head?.type ?? ""} />
        {head?.name} · {duration(((tree.end[span] ?? 0) - (tree.begin[span] ?? 0)) * 1000)}
        {head?.hasError === true ? " · error" : ""}
      </Button>
      {read === undefined && failed === null && <p className={style["reading"]}>Reading</p>}
      {read === undefined && failed !== null && (
        <FailureLine words="Could not be read" problem={problemOf(failed.error, Date.now())} onRetry={failed.again} />
      )}
      {read != null && given.length + returned.length === 0 && <p className={style["reading"]}>No input or output</p>}
      <Conversation messages={[...given, ...returned]} shared={shared} />
    </li>
  );
}

type Failed = { readonly error: unknown; readonly again: () => void } | null;

const failedOf = (read: UseQueryResult | undefined): Failed =>
  read === undefined || read.error === null || read.isFetching ? null : { error: read.error, again: () => void read.refetch() };

export function Thread({ trace, tree }: { readonly trace: OpenTrace; readonly tree: TraceTree }) {
  const [count, setCount] = useState(STEPS);
  const all = useMemo(() => stepsOf(tree), [tree]);
  const steps = all.slice(0, count);
  const reads = useQueries({ queries: steps.map((span) => ({ ...spanQuery(trace.place, tree.spans[span]?.id ?? "") })) });
  const rows = reads.map(({ data }): Read | null | undefined => (data == null ? data : { input: data["input"], output: data["output"] }));
  const shared = foldedOf(rows, steps.map((span) => tree.spans[span]?.type ?? ""));
  if (all.length === 0) return <Empty>The trace has no calls of models or tools.</Empty>;
  return (
    <div className={style["thread"]}>
      <ol className={style["steps"]} aria-label="Conversation of the trace">
        {steps.map((span, index) => (
          <Step key={span} trace={trace} tree={tree} span={span} read={rows[index]} failed={failedOf(reads[index])} shared={shared[index] ?? 0} />
        ))}
      </ol>
      {all.length > count && (
        <Button onClick={() => setCount(count + STEPS)}>
          Show {Math.min(STEPS, all.length - count)} more of {all.length}
        </Button>
      )}
    </div>
  );
}
