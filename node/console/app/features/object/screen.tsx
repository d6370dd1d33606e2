// Leads from an object's type and id to its page.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { askToSignIn } from "../../api/gate";
import { readingOf } from "../../api/queries";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { useLinks, type Links } from "../../lib/links";
import { navigate } from "../../lib/router";
import { isKnownType, objectQuery, type FoundObject } from "./queries";
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
    <Empty>
      The console of this version has no page for the {state.type} {found.name} in {found.project}.
    </Empty>
  );
}

export function ObjectScreen({ state }: { readonly state: ObjectState }) {
  const found = useQuery(objectQuery(state));
  if (!isKnownType(state.type)) {
    return <Empty>The address names an object of an unknown type: {state.type === "" ? "none" : state.type}.</Empty>;
  }
  return (
    <Loaded reading={readingOf(found)} skeleton={<p>Looking for the object</p>} onSignIn={() => void askToSignIn()}>
      {(object) => <Found state={state} found={object} />}
    </Loaded>
  );
}
