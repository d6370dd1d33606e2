// The row that is reviewed: its contents, or its whole trace, beside the form.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState, type RefObject } from "react";
import { askToSignIn } from "../../../api/gate";
import { isRecord, textOrNull, type Fields } from "../../../api/narrow";
import { readingOf } from "../../../api/queries";
import type { Given, ReviewItem } from "../../../api/review";
import type { Score } from "../../../api/reviewScores";
import { Button, ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Json } from "../../../design/Json";
import { withKeys } from "../../../design/Kbd";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { TRACE_VIEW } from "../../../lib/trace";
import { answersOf } from "../answers";
import { contentsQuery, hiddenQuery, neighboursQuery, typeOf } from "../queries";
import { isConditional } from "../scores";
import { writeReviewState } from "../url";
import type { Desk } from "../useDesk";
import type { DeskProps } from "./Desk";
import style from "./Desk.module.css";
import { Form, type FormActions } from "./Form";

const LINES = [[30], [80], [70], [75]];
const NOTHING: Given = { scores: {}, expected: null, metadata: {} };

interface RowProps extends DeskProps {
  readonly id: string;
  readonly desk: Desk;
  readonly form: RefObject<FormActions | null>;
  readonly isTrace: boolean;
  readonly onTrace: (isShown: boolean) => void;
  readonly isOpenTo: (row: ReviewItem) => boolean;
}

interface KnownProps extends RowProps {
  readonly row: ReviewItem;
  readonly fields: Fields;
}

/** The metadata of a row without what the review list keeps there. */
function ownMetadata(fields: Fields): Fields {
  const { metadata } = fields;
  return Object.fromEntries(Object.entries(isRecord(metadata) ? metadata : {}).filter(([key]) => !key.startsWith("~__")));
}

/** Chooses another span of the trace, to read what happened around the row. */
function SpanChoice({ source, row, shown, onShow }: Pick<KnownProps, "source" | "row"> & { readonly shown: string; readonly onShow: (id: string) => void }) {
  const spans = useQuery(neighboursQuery(source, row.root)).data ?? [];
  if (spans.length < 2) return null;
  return (
    <select className={style["spans"]} aria-label="Span that is shown" value={shown} onChange={(event) => onShow(event.currentTarget.value)}>
      {!spans.some(({ id }) => id === row.id) && <option value={row.id}>{row.name}, under review</option>}
      {spans.map(({ id, name, type }) => (
        <option key={id} value={id}>
          {[name || id, type, id === row.id ? "under review" : ""].filter((word) => word !== "").join(", ")}
        </option>
      ))}
    </select>
  );
}

function Contents({ parts, source, row, shown }: KnownProps & { readonly shown: string }) {
  const query = useQuery(contentsQuery(source, shown));
  const place = useMemo(
    () => ({ organization: source.organization, source: { kind: source.kind, id: row.objectId }, root: row.root, version: "" }),
    [source, row],
  );
  return (
    <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(found) => {
        if (found === null) return <p className={style["faint"]}>The span is gone.</p>;
        const metadata = ownMetadata(found.row);
        return (
          <>
            <parts.Contents key={shown} place={place} row={found.row} />
            {Object.keys(metadata).length > 0 && (
              <details className={style["metadata"]}>
                <summary>Metadata</summary>
                <Json value={metadata} label="Metadata" />
              </details>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

/** The left side: the contents of the row or of another span, or the whole trace. */
function Shown(props: KnownProps) {
  const { parts, project, source, row, fields, isTrace, onTrace, isOpenTo } = props;
  const [shown, setShown] = useState(row.id);
  const [view, setView] = useState({ ...TRACE_VIEW, span: row.spanId });
  const isOpen = isOpenTo(row);
  const created = parseMoment(textOrNull(fields, "created"));
  if (isTrace && isOpen) {
    return (
      <div className={style["trace"]}>
        <parts.TracePanel
          organization={source.organization}
          project={project}
          source={{ kind: source.kind, id: row.objectId }}
          root={row.root}
          view={view}
          onView={setView}
          version=""
          onClose={() => onTrace(false)}
        />
      </div>
    );
  }
  return (
    <section className={style["item"]} aria-label="Row">
      <header className={style["itemHead"]}>
        <h2>{row.name}</h2>
        <span className={style["faint"]} title={fullMoment(created)}>
          {[typeOf(fields), shortMoment(created, now.value, preferences.value.zone)].filter((word) => word !== "").join(", ")}
        </span>
        <SpanChoice {...{ source, row, shown }} onShow={setShown} />
        {isOpen ? (
          <Button look="quiet" title={withKeys("Show the whole trace", "o")} onClick={() => onTrace(true)}>
            Whole trace
          </Button>
        ) : (
          isTrace && <span className={style["faint"]}>The whole trace is shown when your review is sent.</span>
        )}
      </header>
      <Contents {...props} shown={shown} />
    </section>
  );
}

/** The scores of a row, once it is known which of them its conditions hide. */
function Answering(props: KnownProps) {
  const { asked, source, row, own, desk } = props;
  const isAsked = asked.some(isConditional);
  const hidden = useQuery({ ...hiddenQuery(source, row, asked), enabled: isAsked });
  const given = own.get(row.spanId) ?? NOTHING;
  const scores: readonly Score[] = useMemo(() => asked.filter(({ id }) => hidden.data?.has(id) !== true), [asked, hidden.data]);
  const before = useMemo(
    () => ({ answers: answersOf(scores, given), comment: textOrNull(given.metadata, "comment") ?? "" }),
    [scores, given],
  );
  if (isAsked && hidden.isPending) return <Skeleton lines={[[20], [30], [20]]} />;
  const draft = desk.drafts.get(row.id) ?? before;
  const fault = hidden.error === null ? "" : "The conditions of the scores could not be evaluated, so that all scores are shown.";
  return <Form {...props} {...{ scores, before, draft, fault }} isSent={own.get(row.spanId)?.isSubmitted === true} />;
}

export function Row(props: RowProps) {
  const { source, id, state, desk, form } = props;
  const known = desk.order.find((one) => one.id === id);
  const query = useQuery(contentsQuery(known === undefined ? source : { ...source, ids: [known.objectId] }, id));
  return (
    <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(found) =>
        found === null ? (
          <Empty
            action={
              <>
                <Button onClick={desk.skip}>Next row</Button>
                <ButtonLink href={writeReviewState({ ...state, at: "queues" })}>Show the queues</ButtonLink>
              </>
            }
          >
            The row is gone. A retention rule or somebody has deleted it.
          </Empty>
        ) : (
          <div className={style["body"]}>
            <Shown {...props} source={{ ...source, ids: [found.item.objectId] }} row={found.item} fields={found.row} />
            <Answering {...props} form={form} source={{ ...source, ids: [found.item.objectId] }} row={found.item} fields={found.row} />
          </div>
        )
      }
    </Loaded>
  );
}
