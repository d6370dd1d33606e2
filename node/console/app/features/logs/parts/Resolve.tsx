// What a link shows that an SDK printed, until the trace of its row is found.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { NamedProject } from "../../../api/schema";
import { ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Loaded } from "../../../design/Loaded";
import { navigate } from "../../../lib/router";
import { rowQuery } from "../laterQueries";
import style from "../screen.module.css";
import { logsUrl, type LogsState } from "../url";

/** Looks for the row of a link that an SDK printed, and replaces the address by the row's trace and span. */
export function Resolve({ state, project }: { readonly state: LogsState; readonly project: NamedProject }) {
  const query = useQuery(rowQuery(state.organization, project.id, state.oid));
  const found = query.data;
  useEffect(() => {
    if (found === undefined || found === null) return;
    const span = found.span === found.root ? "" : found.span;
    navigate(logsUrl.write({ ...state, oid: "", row: found.root, span }), "replace");
  }, [found]);
  return (
    <Loaded
      reading={readingOf(query)}
      skeleton={<p className={style["note"]}>Looking for the row {state.oid}</p>}
      onSignIn={() => void askToSignIn().then(() => query.refetch())}
    >
      {(one) =>
        one === null ? (
          <Empty action={<ButtonLink href={logsUrl.write({ ...state, oid: "" })}>Show all logs</ButtonLink>}>
            The project has no row with the id {state.oid}. It may have been deleted, or it has not arrived yet.
          </Empty>
        ) : null
      }
    </Loaded>
  );
}
