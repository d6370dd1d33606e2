// The list of groups: rows with equal values of a path, with what is counted of them.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { LogGroup } from "../../../api/rows";
import { called, literal } from "../../../btql/write";
import { Button } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Grid } from "../../../design/Grid";
import { createGridState, gridCommands, type GridColumn } from "../../../design/GridTypes";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { useCommands } from "../../../lib/commands";
import { duration, exactCount, money, shortCount } from "../../../lib/numbers";
import { groupsQuery } from "../laterQueries";
import { GROUPS } from "../laterRequests";
import type { LogsRequest } from "../request";
import type { LogsState } from "../url";
import { lineOf } from "../values";
import { Line, When } from "./cells";
import style from "./Rows.module.css";

interface GroupsProps {
  readonly state: LogsState;
  readonly request: LogsRequest;
  readonly change: (changed: Partial<LogsState>) => void;
  readonly addFilter: (expression: string, changed: Partial<LogsState>) => void;
}

const LINES = Array.from({ length: 8 }, () => [30, 8, 8, 8, 8, 8, 12]);

const keyOf = (group: LogGroup): string => JSON.stringify(group.value) ?? "";

function columnsOf(request: LogsRequest): readonly GridColumn<LogGroup>[] {
  const noun = request.shape === "traces" ? "Traces" : "Spans";
  const number = { width: 96, align: "end" } as const;
  return [
    {
      id: "value",
      title: request.group,
      width: 200,
      grow: 1,
      cell: ({ value }) => <Line text={lineOf(value)} />,
    },
    { id: "count", title: noun, ...number, cell: ({ count }) => <span title={exactCount(count)}>{shortCount(count)}</span> },
    { id: "errors", title: "Errors", ...number, cell: ({ errors }) => <span className={errors > 0 ? style["bad"] : undefined}>{shortCount(errors)}</span> },
    { id: "duration", title: "p95 duration", ...number, width: 112, cell: (group) => duration(group.duration) },
    { id: "tokens", title: "Tokens", ...number, cell: ({ tokens }) => <span title={exactCount(tokens)}>{shortCount(tokens)}</span> },
    { id: "cost", title: "Cost", ...number, cell: ({ cost }) => money(cost) },
    { id: "newest", title: "Newest", width: 148, cell: ({ newest }) => <When at={newest} /> },
  ];
}

/** The condition that a row belongs to a group; values that are no plain ones are compared by their text. */
function conditionOf(group: string, value: unknown): string {
  if (value === null) return `(${group}) IS NULL`;
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    return `(${group}) = ${literal(value)}`;
  }
  return `${called("to_string", group)} = ${literal(JSON.stringify(value))}`;
}

export function Groups({ state, request, change, addFilter }: GroupsProps) {
  const query = useQuery({ ...groupsQuery(state.organization, request), placeholderData: (before) => before });
  const [grid] = useState(() => createGridState());
  const columns = useMemo(() => columnsOf(request), [request]);
  useCommands(useMemo(() => gridCommands(grid, "Logs", "group").filter((one) => !one.id.endsWith("select")), [grid]));
  return (
    <div className={style["list"]}>
      <Loaded
        reading={readingOf(query)}
        skeleton={<Skeleton lines={LINES} />}
        onSignIn={() => void askToSignIn().then(() => query.refetch())}
      >
        {(groups) =>
          groups.length === 0 ? (
            <Empty action={<Button onClick={() => change({ group: "" })}>Show without groups</Button>}>
              No row in this range fulfils the filter.
            </Empty>
          ) : (
            <>
              {groups.length === GROUPS && <p className={style["note"]}>These are the {GROUPS} largest groups. There may be more.</p>}
              <Grid
                label={`Groups by ${state.group}`}
                state={grid}
                rows={groups}
                rowId={keyOf}
                columns={columns}
                total={groups.length}
                isSelectable={false}
                onOpen={({ value }) => addFilter(conditionOf(state.group, value), { group: "" })}
              />
            </>
          )
        }
      </Loaded>
    </div>
  );
}
