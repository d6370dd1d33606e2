// The right column of the home: reviews that are assigned, experiments that run, and what has changed since the last visit.
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useMemo, useState, type ReactNode } from "react";
import { problemOf } from "../../../lib/errors";
import type { Organization, Project } from "../../../api/schema";
import { classes } from "../../../design/classes";
import { FailureLine } from "../../../design/FailureLine";
import { Icon, type IconName } from "../../../design/Icon";
import { Skeleton } from "../../../design/Skeleton";
import { useLinks, type Links } from "../../../lib/links";
import { exactCount } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { rangeBetween } from "../../../lib/range";
import { fullMoment, now, shortMoment } from "../../../lib/time";
import { kindCondition, percentText, type MadeObject } from "../news";
import { assignedQuery, newsQuery, runningQuery, withRows, type News as Found } from "../newsQueries";
import { beginVisit } from "../visits";
import style from "./News.module.css";

const SHOWN = 5;
const WAITING = [[20]];

interface Line {
  readonly id: string;
  readonly icon: IconName;
  readonly href: string;
  readonly words: string;
  readonly said: string;
  readonly isBad?: boolean;
}

function Lines({ lines }: { readonly lines: readonly Line[] }) {
  const [isAll, setAll] = useState(false);
  return (
    <ul className={style["lines"]}>
      {(isAll ? lines : lines.slice(0, SHOWN)).map(({ id, icon, href, words, said, isBad }) => (
        <li key={id}>
          <a href={href} className={style["line"]}>
            <span className={isBad === true ? style["bad"] : style["icon"]}><Icon name={icon} /></span>
            <span className={style["words"]} title={words}>{words}</span>
            <span className={style["said"]}>{said}</span>
          </a>
        </li>
      ))}
      {!isAll && lines.length > SHOWN && (
        <li><button type="button" className={style["more"]} onClick={() => setAll(true)}>Show {lines.length - SHOWN} more</button></li>
      )}
    </ul>
  );
}

interface PartProps {
  readonly title: string;
  readonly lines: readonly Line[] | undefined;
  readonly query: Pick<UseQueryResult, "error" | "isFetching" | "refetch">;
  readonly empty: ReactNode;
  /** Whether what is said of a line stands beside it. */
  readonly isShort?: boolean;
}

function Part({ title, lines, query: { error, isFetching, refetch }, empty, isShort = false }: PartProps) {
  return (
    <section aria-label={title} className={classes(style["part"], isShort && style["short"])}>
      <h2>{title}</h2>
      {error !== null && !isFetching && (
        <FailureLine words="Could not be read" problem={problemOf(error, Date.now())} onRetry={() => void refetch()} />
      )}
      {lines === undefined && isFetching && <Skeleton lines={WAITING} />}
      {lines?.length === 0 && <p className={style["empty"]}>{empty}</p>}
      {lines !== undefined && lines.length > 0 && <Lines lines={lines} />}
    </section>
  );
}

const ICONS: Readonly<Record<MadeObject["kind"], IconName>> = { project: "folder", experiment: "flask", dataset: "database", prompt: "message" };

interface Names {
  readonly organization: string;
  readonly links: Links;
  nameOf(project: string): string;
}

function madeHref({ kind, name, slug, project }: MadeObject, { organization, links, nameOf }: Names): string {
  const of = nameOf(project);
  switch (kind) {
    case "project":
      return links.logs(organization, name);
    case "experiment":
      return links.experiment(organization, of, name);
    case "dataset":
      return links.dataset(organization, of, name);
    case "prompt":
      return links.page("prompts", organization, of, slug === null ? [] : [slug]);
  }
}

/** The changes as lines, what is worse first. */
function linesOf({ since, made, rates, errors }: Found, names: Names): readonly Line[] {
  const { organization, links, nameOf } = names;
  const range = rangeBetween(since, Math.ceil(now.peek() / 60_000) * 60_000 + 60_000);
  const logs = (project: string, filter: string, shape: "traces" | "spans"): string =>
    links.logsWhere(organization, nameOf(project), { range, filter, shape });
  const ofErrors = errors.map((kind): Line => ({
    id: `error ${kind.project} ${kind.texts[0]}`,
    icon: "warning",
    isBad: true,
    href: logs(kind.project, kindCondition(kind), "spans"),
    words: `New error: ${kind.texts[0]?.split("\n", 1)[0] || "without text"}`,
    said: `${nameOf(kind.project)}, ${exactCount(kind.count)} ${kind.count === 1 ? "time" : "times"}`,
  }));
  const ofRates = rates.toSorted((a, b) => b.since - b.before - (a.since - a.before)).map((rate): Line => ({
    id: `rate ${rate.project}`,
    icon: rate.since > rate.before ? "up" : "down",
    isBad: rate.since > rate.before,
    href: logs(rate.project, "any_span(error IS NOT NULL)", "traces"),
    words: `${rate.since > rate.before ? "More" : "Fewer"} traces fail: ${percentText(rate.since)}, before ${percentText(rate.before)}`,
    said: nameOf(rate.project),
  }));
  const ofMade = made.toSorted((a, b) => b.created - a.created).map((one): Line => ({
    id: one.id,
    icon: ICONS[one.kind],
    href: madeHref(one, names),
    words: `New ${one.kind}: ${one.name}`,
    said: one.kind === "project" ? "" : nameOf(one.project),
  }));
  return [...ofRates.filter(({ isBad }) => isBad), ...ofErrors, ...ofRates.filter(({ isBad }) => isBad !== true), ...ofMade];
}

interface NewsProps {
  readonly organization: Organization;
  readonly user: string;
  readonly projects: readonly Project[];
}

export function News({ organization: { id, name: organization }, user, projects }: NewsProps) {
  const links = useLinks();
  const visit = useMemo(() => beginVisit(id), [id]);
  const logs = useMemo(() => withRows(projects), [projects]);
  const nameOf = (project: string): string => projects.find((one) => one.id === project)?.name ?? project;
  const assigned = useQuery(assignedQuery(organization, user, logs));
  const running = useQuery(runningQuery(organization));
  const news = useQuery({ ...newsQuery(organization, projects, visit.since ?? 0), enabled: visit.since !== null });
  const since = visit.since === null ? null : new Date(visit.since);
  const rows = (count: number, word: string): string => `${exactCount(count)} ${word}${count === 1 ? "" : "s"}`;
  return (
    <aside className={style["news"]} aria-label="For you">
      <Part
        isShort
        title="To review"
        query={assigned}
        empty="No row is assigned to you."
        lines={logs.length === 0 ? [] : assigned.data && [...assigned.data].filter(([, count]) => count > 0).map(([project, count]) => ({
          id: project, icon: "checks", href: links.page("review", organization, nameOf(project), ["assigned"]), words: nameOf(project), said: rows(count, "row"),
        }))}
      />
      <Part
        title="Running"
        query={running}
        empty="No experiment is running."
        lines={running.data?.map((one) => ({ id: one.id, icon: "flask", href: madeHref(one, { organization, links, nameOf }), words: one.name, said: `${nameOf(one.project)}, ${rows(one.rows, "row")}` }))}
      />
      <Part
        title="Since your last visit"
        query={news}
        empty={since === null ? "This is your first visit with this browser. Next time, what has changed is here." : <>Nothing has changed since <span title={fullMoment(since)}>{shortMoment(since, now.value, preferences.value.zone).replace(/:\d\d\.\d+$/, "")}</span>.</>}
        lines={since === null ? [] : news.data && linesOf(news.data, { organization, links, nameOf })}
      />
    </aside>
  );
}
