// The line that tells when the first trace has arrived, with the way to it.
import { ButtonLink } from "../../../design/Button";
import { Icon } from "../../../design/Icon";
import { useLinks } from "../../../lib/links";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import type { Project } from "../../../api/schema";
import type { Arrival } from "../arrival";
import style from "./ArrivalLine.module.css";

/** When the newest trace of a project came. A trace that came since the clock last moved is new. */
function When({ project }: { readonly project: Project }) {
  const moment = parseMoment(project.newest);
  const present = Math.max(now.value, moment?.getTime() ?? 0);
  return <span title={fullMoment(moment)}>{shortMoment(moment, present, preferences.value.zone)}</span>;
}

interface ArrivalLineProps {
  readonly arrival: Arrival;
  readonly organization: string;
  /** The project that the code names. */
  readonly project: string;
}

export function ArrivalLine({ arrival, organization, project }: ArrivalLineProps) {
  const links = useLinks();
  return (
    <section className={style["line"]} aria-label="Traces that have arrived" role="status">
      {arrival.kind === "waiting" ? (
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
          <ButtonLink
            look={arrival.kind === "here" ? "primary" : "plain"}
            href={links.home(organization, arrival.project.name)}
          >
            Open the project list
          </ButtonLink>
        </>
      )}
    </section>
  );
}
