// What the organization stores against its quotas, by project, and how much of its rates is used.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { Rate, StoredProject, Usage } from "../../../api/usage";
import { Button } from "../../../design/Button";
import { bytesText } from "../../../design/bytes";
import { Icon } from "../../../design/Icon";
import { Loaded } from "../../../design/Loaded";
import { Meter } from "../../../design/Meter";
import { Skeleton } from "../../../design/Skeleton";
import { exactCount, shortCount } from "../../../lib/numbers";
import { useLinks } from "../../../lib/links";
import { navigate } from "../../../lib/router";
import { usageQuery } from "../queries";
import style from "../section.module.css";
import { rateFill, rateName, rateText, shareOf, shareText, sortedProjects, toneOf } from "../stored";
import { writeUsageState, type UsageSort, type UsageState } from "../url";

const SHOWN = 25;

/** Bars as high as the figures and the first projects. */
const FIGURES = [52, 52];
const PROJECT = [40, 8, 8, 8];
const BARS = [FIGURES, FIGURES, FIGURES, FIGURES, PROJECT, PROJECT, PROJECT, PROJECT];

interface FigureProps {
  readonly title: string;
  readonly used: number;
  readonly quota: number | null;
  readonly write: (count: number) => string;
}

function Figure({ title, used, quota, write }: FigureProps) {
  const share = shareOf(used, quota);
  return (
    <div className={style["figure"]}>
      <dt>{title}</dt>
      <dd>
        {write(used)} {quota !== null && <small>of {write(quota)}, {shareText(share)}</small>}
      </dd>
      {quota === null ? <dd><small>There is no quota.</small></dd> : <dd><Meter share={share} tone={toneOf(share)} /></dd>}
    </div>
  );
}

const COLUMNS: readonly { readonly sort: UsageSort; readonly title: string }[] = [
  { sort: "name", title: "Project" },
  { sort: "rows", title: "Rows" },
  { sort: "bytes", title: "Size" },
];

function ProjectRow({ project, total, state }: { readonly project: StoredProject; readonly total: number; readonly state: UsageState }) {
  const links = useLinks();
  const share = shareOf(project.bytes, total);
  return (
    <tr>
      <th scope="row" className={style["name"]}>
        <a href={links.logs(state.organization, project.name)} title={project.name}>{project.name}</a>
      </th>
      <td className={style["number"]} title={exactCount(project.rows)}>{shortCount(project.rows)}</td>
      <td className={style["number"]} title={`${exactCount(project.bytes)} bytes`}>{bytesText(project.bytes)}</td>
      <td className={style["number"]}>{shareText(share)}</td>
      <td className={style["share"]}><Meter share={share} /></td>
    </tr>
  );
}

function Projects({ usage, state }: { readonly usage: Usage; readonly state: UsageState }) {
  const [isAll, setAll] = useState(false);
  const sorted = sortedProjects(usage.projects, state.sort);
  const shown = isAll ? sorted : sorted.slice(0, SHOWN);
  const total = usage.projects.reduce((sum, project) => sum + project.bytes, 0);
  if (sorted.length === 0) return <p className={style["lead"]}>No project has a row yet.</p>;
  return (
    <>
      <div className={style["scroll"]} tabIndex={0} role="region" aria-label="Stored by project">
        <table className={style["table"]}>
          <caption className="only-spoken">Stored by project</caption>
          <thead>
            <tr>
              {COLUMNS.map(({ sort, title }) => (
                <th
                  key={sort}
                  scope="col"
                  className={sort === "name" ? undefined : style["number"]}
                  aria-sort={sort !== state.sort ? undefined : sort === "name" ? "ascending" : "descending"}
                >
                  <button type="button" className={style["sort"]} onClick={() => navigate(writeUsageState({ ...state, sort }), "replace")}>
                    {title}
                    {sort === state.sort && <Icon name={sort === "name" ? "up" : "down"} />}
                  </button>
                </th>
              ))}
              <th scope="col" className={style["number"]}>Share</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {shown.map((project) => (
              <ProjectRow key={project.id} {...{ project, total, state }} />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < sorted.length && <p><Button onClick={() => setAll(true)}>Show all {exactCount(sorted.length)} projects</Button></p>}
    </>
  );
}

function Rates({ rates }: { readonly rates: readonly Rate[] }) {
  return (
    <section className={style["part"]} aria-label="Rates">
      <h2>Rates</h2>
      {rates.length === 0 && <p className={style["lead"]}>This installation sets no rates.</p>}
      <ul className={style["limits"]}>
        {rates.map((rate) => (
          <li key={`${rateName(rate)} ${rate.per}`} className={style["limit"]}>
            <b>{rateName(rate)}</b>
            <Meter share={rateFill(rate)} tone={toneOf(rateFill(rate))} />
            <span className={style["said"]}>{rateText(rate)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Stored({ state }: { readonly state: UsageState }) {
  const query = useQuery(usageQuery(state.organization));
  return (
    <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={BARS} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
      {(usage) => (
        <div className={style["screen"]}>
          <section className={style["part"]} aria-label="Stored">
            {!usage.isComplete && (
              <p className={style["fault"]} role="alert">
                A part of the cluster does not answer. The sums are too small.
              </p>
            )}
            <dl className={style["figures"]}>
              <Figure title="Rows" used={usage.rows} quota={usage.quota.rows} write={exactCount} />
              <Figure title="Size" used={usage.bytes} quota={usage.quota.bytes} write={bytesText} />
            </dl>
            <Projects usage={usage} state={state} />
          </section>
          <Rates rates={usage.rates} />
        </div>
      )}
    </Loaded>
  );
}
