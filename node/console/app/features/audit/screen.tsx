// The section of the settings about the audit log: who changed what, and whether the log is whole.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import type { AuditEntry, AuditFilter, AuditScope } from "../../api/audit";
import { isAbort, problemOf } from "../../lib/errors";
import { askToSignIn } from "../../api/gate";
import { cache, until } from "../../api/queries";
import type { SectionProps } from "../../api/settings";
import { Button } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Grid } from "../../design/Grid";
import { createGridState, type GridState } from "../../design/GridTypes";
import { Loaded } from "../../design/Loaded";
import { SectionPage } from "../../design/SectionPage";
import { Skeleton } from "../../design/Skeleton";
import { useCommands, useLatest } from "../../lib/commands";
import type { Reading } from "../../lib/problem";
import { boundsOf } from "../../lib/range";
import { navigate } from "../../lib/router";
import { announce } from "../../lib/store";
import { auditCommands } from "./commands";
import { ChainLine, useChain } from "./parts/ChainLine";
import { auditColumns } from "./parts/columns";
import { EntryPanel } from "./parts/Entry";
import { ExportMenu } from "./parts/ExportMenu";
import { Filters, OBJECT_FILTER_ID } from "./parts/Filters";
import { countsQuery, entriesQuery, namesQuery } from "./queries";
import style from "./screen.module.css";
import { auditAddress, isFiltered, readAuditState, type AuditState } from "./url";
import { faultWords, faultyEntry, type Names } from "./words";

const LINES = Array.from({ length: 10 }, () => [4, 10, 16, 8, 24, 24]);
/** The columns that fit beside an open entry, which shows the others. */
const BESIDE: ReadonlySet<string> = new Set(["sequence", "created", "action", "object"]);
const NO_NAMES: Names = new Map();
const NO_ENTRIES: readonly AuditEntry[] = [];

const idOf = ({ sequence }: AuditEntry): string => String(sequence);

/** The filter of a state. Its bounds stay while the range stays, so that paging has one answer. */
function useFilter({ who, action, kind, object, range }: AuditState): AuditFilter {
  return useMemo(
    () => ({ who, action, kind, object, ...boundsOf(range, Date.now()) }),
    [who, action, kind, object, range],
  );
}

function useEntries(scope: AuditScope, filter: AuditFilter) {
  const options = entriesQuery(scope, filter);
  const query = useInfiniteQuery({ ...options, placeholderData: (before) => before });
  const { data, hasNextPage, isFetching, isFetchingNextPage } = query;
  const entries = useMemo(() => data?.pages.flatMap((page) => page.entries), [data]);
  const isFailed = query.error !== null && !isAbort(query.error);
  const reading: Reading<readonly AuditEntry[]> = {
    data: entries,
    problem: isFailed ? problemOf(query.error, query.errorUpdatedAt) : null,
    isReading: isFetching && !isFetchingNextPage,
    again: () => void query.refetch(),
    stop: () => void cache.cancelQueries({ queryKey: options.queryKey }),
  };
  const more = useLatest(() => {
    if (hasNextPage && !isFetching) void query.fetchNextPage();
  });
  return { reading, entries: entries ?? NO_ENTRIES, hasMore: hasNextPage, isReadingMore: isFetchingNextPage, isOld: query.isPlaceholderData, more };
}

type Entries = ReturnType<typeof useEntries>;

interface ListProps {
  readonly state: AuditState;
  readonly grid: GridState;
  readonly read: Entries;
  readonly names: Names;
  readonly faulty: number;
  readonly change: (changed: Partial<AuditState>) => void;
}

function List({ state, grid, read, names, faulty, change }: ListProps) {
  const isOpen = state.entry > 0;
  const columns = useMemo(
    () => auditColumns(names, faulty).filter(({ id }) => !isOpen || BESIDE.has(id)),
    [names, faulty, isOpen],
  );
  const { reading, hasMore, isReadingMore, more } = read;
  return (
    <div className={style["list"]} data-old={read.isOld || undefined}>
      <Loaded
        reading={reading}
        skeleton={<div className={style["bars"]}><Skeleton lines={LINES} /></div>}
        onSignIn={() => void askToSignIn().then(() => reading.again())}
      >
        {(entries) =>
          entries.length === 0 ? (
            <NoEntries state={state} change={change} />
          ) : (
            <Grid
              label="Audit log"
              state={grid}
              rows={entries}
              rowId={idOf}
              columns={columns}
              total={hasMore ? undefined : entries.length}
              isReadingMore={isReadingMore}
              isSelectable={false}
              onOpen={({ sequence }) => change({ entry: sequence })}
              onEnd={more}
            />
          )
        }
      </Loaded>
    </div>
  );
}

function NoEntries({ state, change }: Pick<ListProps, "state" | "change">) {
  if (!isFiltered(state)) return <Empty>The log is empty. It keeps changes of access, keys, secrets and budgets.</Empty>;
  const all = { who: "", action: "", kind: "", object: "", range: "all" };
  return <Empty action={<Button onClick={() => change(all)}>Show the whole log</Button>}>No entry fits the filter.</Empty>;
}

/** Says how many entries the filter finds, once they are read. */
function useCountSpoken({ entries, hasMore, reading, isOld }: Entries): void {
  const isThere = reading.data !== undefined && !reading.isReading && !isOld;
  useEffect(() => {
    if (isThere) announce(`${entries.length}${hasMore ? " or more" : ""} entries`);
  }, [isThere, entries.length, hasMore]);
}

function useScreen({ place, organization }: SectionProps) {
  const state = readAuditState(place);
  const scope = useMemo(
    () => ({ organization: organization.name, organizationId: organization.id }),
    [organization.name, organization.id],
  );
  const filter = useFilter(state);
  const [grid] = useState(() => createGridState(state.entry === 0 ? null : String(state.entry)));
  const read = useEntries(scope, filter);
  const chain = useChain(scope, isFiltered(state) ? 0 : (read.entries[0]?.sequence ?? 0));
  const change = useLatest((changed: Partial<AuditState>) => navigate(auditAddress({ ...state, ...changed }), "replace"));
  const close = useLatest(() => {
    change({ entry: 0 });
    grid.actions.focus(String(state.entry));
  });
  const isOpen = state.entry > 0;
  const commands = useMemo(
    () => auditCommands({ grid, isOpen, close, focusFilter: () => document.getElementById(OBJECT_FILTER_ID)?.focus() }),
    [grid, isOpen, close],
  );
  useCommands(commands);
  useCountSpoken(read);
  const fault = chain.state.step === "done" ? chain.state.fault : null;
  return { state, scope, filter, grid, read, chain, change, close, fault };
}

export function Section(props: SectionProps) {
  const { state, scope, filter, grid, read, chain, change, close, fault } = useScreen(props);
  const counts = useQuery(countsQuery(scope)).data ?? [];
  const { data: names = NO_NAMES, isLoading } = useQuery(namesQuery(scope.organization));
  const faulty = fault === null ? 0 : faultyEntry(fault);
  // whoever may not read the log sees why, once
  const isRefused = read.reading.data === undefined && read.reading.problem !== null;
  const reading = until(isRefused || !isLoading, read.reading);
  const list = <List {...{ state, grid, names, faulty, change }} read={{ ...read, reading }} />;
  return (
    <SectionPage
      title="Audit log"
      note="Changes of access, keys, secrets and budgets, sign-ins and deletions. Each entry holds the hash of the one before it, so that this page can tell whether the log is whole."
      actions={isRefused ? undefined : <ExportMenu scope={scope} filter={filter} />}
    >
      {isRefused ? (
        list
      ) : (
        <>
          <ChainLine chain={chain} hrefOf={(entry) => auditAddress({ ...state, entry })} />
          <Filters state={state} counts={counts} names={names} change={change} />
          <div className={style["body"]}>
            {list}
            {state.entry > 0 && !isLoading && (
              <EntryPanel
                scope={scope}
                sequence={state.entry}
                listed={read.entries.find(({ sequence }) => sequence === state.entry)}
                names={names}
                fault={fault !== null && faulty === state.entry ? faultWords(fault) : null}
                onClose={close}
              />
            )}
          </div>
        </>
      )}
    </SectionPage>
  );
}
