// The line that tells when the first trace has arrived, with the way to it.
import { useQuery } from "@tanstack/react-query";
import { ButtonLink } from "../../../design/Button";
import { Icon } from "../../../design/Icon";
import { Skeleton } from "../../../design/Skeleton";
import { useLinks } from "../../../lib/links";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import type { Project } from "../../../api/schema";
import type { Arrival } from "../arrival";
import { newestTraceQuery } from "../queries";
import style from "./ArrivalLine.module.css";

/** When the newest trace of a project came. A trace that came since the clock last moved is new. */
function When({ project }: { readonly project: Project }) {
  const moment = parseMoment(project.newest);
  const present = Math.max(now.value, moment?.getTime() ?? 0);
  return <span title={fullMoment(moment)}>{shortMoment(moment, present, preferences.value.zone)}</span>;
}

interface OpenProps {
  readonly organization: string;
  readonly project: Project;
  readonly isNew: boolean;
}

/** The way to the newest trace of a project. Until it is known which that is, the way leads to the project's logs. */
function Open({ organization, project, isNew }: OpenProps) {
  const links = useLinks();
  const root = useQuery(newestTraceQuery(organization, project.id)).data ?? null;
  const look = isNew ? "primary" : "plain";
  return root === null ? (
    <ButtonLink look={look} href={links.logs(organization, project.name)}>
      Open the logs
    </ButtonLink>
  ) : (
    <ButtonLink look={look} href={links.trace(organization, project.name, root)}>
      Open the trace
    </ButtonLink>
  );
}

interface ArrivalLineProps {
  /** Null before it is known. */
  readonly arrival: Arrival | null;
  readonly organization: string;
  /** The project that the code names. */
  readonly project: string;
}

export function ArrivalLine({ arrival, organization, project }: ArrivalLineProps) {
  return (
    <section className={style["line"]} aria-label="Traces that have arrived" role="status">
      {arrival === null ? (
        <Skeleton lines={[[24], [40]]} />
      ) : arrival.kind === "waiting" ? (
        <>
          <h2>Waiting for the first trace</h2>
          <p>Run the code of step 3. This page looks every 2 seconds and shows the trace when it is there.</p>
        </>
      ) : (
        <>
          <h2 className={arrival.kind === "here" ? style["here"] : undefined}>
            {arrival.kind === "here" && <Icon name="check" />}
            {arrival.kind === "here" ? "A trace has arrived" : `Waiting for a trace in ${project}`}
          </h2>
          <p>
            The newest is in <strong>{arrival.project.name}</strong>, <When project={arrival.project} />.
          </p>
          <Open organization={organization} project={arrival.project} isNew={arrival.kind === "here"} />
        </>
      )}
    </section>
  );
}
