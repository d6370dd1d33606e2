// What is known of one span: its contents in several forms, its facts, and what people say about it.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { problemOf } from "../../../lib/errors";
import { askToSignIn } from "../../../api/gate";
import type { Fields } from "../../../api/narrow";
import type { SpanHead, SpanPlace } from "../../../api/spans";
import { ErrorState } from "../../../design/ErrorState";
import { Json } from "../../../design/Json";
import { Skeleton } from "../../../design/Skeleton";
import { Tabs } from "../../../design/Tabs";
import { spanQuery } from "../queries";
import type { TraceTree } from "../tree/model";
import { Contents, type Form } from "./Contents";
import style from "./Detail.module.css";
import { Difference } from "./Difference";
import { Facts } from "./Facts";
import { takesFeedback } from "./feedback";
import { expressionOf, tagExpression, type FilterBy } from "./filter";
import { History } from "./History";
import { callBefore, comparable, reviewsOf } from "./relatives";
import { Comments, Tags } from "./Remarks";
import { Scores } from "./Scores";
import { Section } from "./Section";
import { useWriting, type Writing } from "./useWriting";

const TABS = [
  { id: "rendered", title: "Rendered" },
  { id: "json", title: "JSON" },
  { id: "yaml", title: "YAML" },
  { id: "markdown", title: "Markdown" },
  { id: "text", title: "Text" },
  { id: "diff", title: "Diff" },
  { id: "raw", title: "Raw" },
] as const;

/** The value of `tab` that shows the rendered contents and puts the focus where a comment is written. */
export const COMMENT_TAB = "review";

/** Bars of the detail while it is read, as shares of its width. */
const LINES = [[30], [90], [70], [80]] as const;

interface DetailProps {
  readonly place: SpanPlace;
  readonly head: SpanHead | undefined;
  readonly tab: string;
  readonly onTab: (tab: string) => void;
  /** The other spans of the trace; absent where they are not known. */
  readonly tree?: TraceTree | undefined;
  /** The project, whose scores can be given. */
  readonly project?: { readonly id: string } | undefined;
  /** Filters the list by an expression; absent without a list. */
  readonly onFilter?: ((expression: string) => void) | undefined;
}

interface ShownProps extends Omit<DetailProps, "head" | "onTab"> {
  readonly head: SpanHead;
  readonly row: Fields;
}

interface PeopleProps extends ShownProps {
  readonly writing: Writing | null;
}

function People({ place, head, row, tab, tree, project, onFilter, writing }: PeopleProps) {
  const reviews = useMemo(() => reviewsOf(tree, head), [tree, head]);
  const byTag = onFilter === undefined ? undefined : (tag: string, isExcluded: boolean) => onFilter(tagExpression(tag, isExcluded));
  return (
    <>
      <Scores place={place} projectId={project?.id ?? ""} row={row} reviews={reviews} writing={writing} />
      <Tags row={row} writing={writing} onFilter={byTag} />
      <Comments place={place} row={row} writing={writing} isWriting={tab === COMMENT_TAB} />
      <History place={place} row={row} id={head.id} />
    </>
  );
}

function Shown(props: ShownProps) {
  const { place, head, row, tab, tree, onFilter } = props;
  const written = useWriting(place, row);
  const writing = takesFeedback(place) ? written : null;
  const previous = useMemo(() => callBefore(tree, head), [tree, head]);
  const others = useMemo(() => (tab === "diff" ? comparable(tree, head) : []), [tree, head, tab]);
  const filterBy: FilterBy | undefined =
    onFilter === undefined
      ? undefined
      : (steps, value, isExcluded) => {
          const expression = expressionOf(steps, value, isExcluded);
          if (expression !== null) onFilter(expression);
        };
  switch (tab) {
    case "diff":
      return <Difference key={head.id} place={place} row={row} others={others} />;
    case "raw":
      return (
        <Section title="Row">
          <Json value={row} label="Row" onFilter={filterBy} />
        </Section>
      );
    default: {
      const form: Form = tab === "json" || tab === "yaml" || tab === "markdown" || tab === "text" ? tab : "rendered";
      return (
        <>
          <Contents key={head.id} place={place} row={row} form={form} previous={previous} writing={writing} onFilter={filterBy} />
          {form === "rendered" && (
            <>
              <Facts place={place} head={head} row={row} onFilter={filterBy} />
              <People key={`${head.id} people`} {...props} writing={writing} />
            </>
          )}
        </>
      );
    }
  }
}

export function Detail({ head, tab, onTab, ...rest }: DetailProps) {
  const reading = useQuery(spanQuery(rest.place, head?.id ?? ""));
  const row = reading.data;
  const chosen = TABS.some((one) => one.id === tab) ? tab : "rendered";
  return (
    <Tabs label="Detail of the span" tabs={TABS} chosen={chosen} onChoose={(next) => onTab(next === "rendered" ? "" : next)}>
      {reading.isError && row === undefined && (
        <ErrorState problem={problemOf(reading.error, Date.now())} onRetry={() => void reading.refetch()} onSignIn={() => void askToSignIn()} />
      )}
      {row === undefined && reading.isPending && <div className={style["waiting"]}><Skeleton lines={LINES} /></div>}
      {row === null && <p className={style["empty"]}>The span is gone. A retention rule or somebody has deleted it.</p>}
      {row !== undefined && row !== null && head !== undefined && (
        <div className={reading.isPlaceholderData ? style["old"] : undefined}>
          <Shown {...rest} head={head} row={row} tab={tab} />
        </div>
      )}
    </Tabs>
  );
}
