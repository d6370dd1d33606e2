// What stands in the place of the list when it is empty.
import { Button, ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { useLinks } from "../../../lib/links";
import { exactCount } from "../../../lib/numbers";
import { navigate } from "../../../lib/router";
import { experimentsUrl, type ExperimentsState } from "../url";

/** Why the list is empty, and the way out. */
export function NoExperiments({ state, count }: { readonly state: ExperimentsState; readonly count: number }) {
  const links = useLinks();
  if (count > 0) {
    const all = experimentsUrl.write({ ...state, filter: "" });
    return (
      <Empty action={<Button onClick={() => navigate(all, "replace")}>Show all {exactCount(count)}</Button>}>
        No experiment has “{state.filter}” in its name, tags, commit or metadata.
      </Empty>
    );
  }
  if (state.version !== "") return <Empty>The project had no experiment then.</Empty>;
  return (
    <Empty
      action={
        <ButtonLink look="primary" href={links.welcome(state.organization, state.project)}>
          Show how to send data
        </ButtonLink>
      }
    >
      This project has no experiment yet. Run an evaluation with an SDK, and it appears here while its rows come in.
    </Empty>
  );
}
