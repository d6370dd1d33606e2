// Leads from an object's type and id to its page.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { askToSignIn } from "../../api/gate";
import { readingOf } from "../../api/queries";
import { ButtonLink } from "../../design/Button";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { useLinks, type Links } from "../../lib/links";
import { navigate } from "../../lib/router";
import { isKnownType, objectQuery, type FoundObject } from "./queries";
import style from "./screen.module.css";
import type { ObjectState } from "./url";

/** The address of an object's page; null if the console has none. */
function pageOf(links: Links, { organization, type, row }: ObjectState, { project, name }: FoundObject): string | null {
  switch (type) {
    case "project_logs":
    case "project_log":
      return row === "" ? links.logs(organization, project) : links.logRow(organization, project, row);
    case "project":
      return links.logs(organization, project);
    case "experiment":
      return links.experiment(organization, project, name, [], row);
    case "dataset":
      return links.dataset(organization, project, name);
    default:
      return null;
  }
}

function Found({ state, found }: { readonly state: ObjectState; readonly found: FoundObject }) {
  const links = useLinks();
  const page = pageOf(links, state, found);
  useEffect(() => {
    if (page !== null) navigate(page, "replace");
  }, [page]);
  if (page !== null) return null;
  return (
    <Empty action={<ButtonLink href={links.logs(state.organization, found.project)}>Show the logs of {found.project}</ButtonLink>}>
      The console of this version has no page for the {state.type} {found.name} in {found.project}.
    </Empty>
  );
}

function Content({ state }: { readonly state: ObjectState }) {
  const query = useQuery(objectQuery(state));
  const links = useLinks();
  if (!isKnownType(state.type)) {
    return (
      <Empty action={<ButtonLink href={links.home(state.organization)}>Show all projects</ButtonLink>}>
        The address names {state.type === "" ? "no type of object" : `an object of the unknown type ${state.type}`}.
      </Empty>
    );
  }
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<p>Looking for the object</p>}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {(object) => <Found state={state} found={object} />}
    </Loaded>
  );
}

export function ObjectScreen({ state }: { readonly state: ObjectState }) {
  return (
    <div className={style["screen"]}>
      <h1 className="only-spoken" tabIndex={-1}>
        Object
      </h1>
      <Content state={state} />
    </div>
  );
}
