// The bars that say which version is shown, and that it is read only.
import { useQuery } from "@tanstack/react-query";
import { Button } from "../../../design/Button";
import { Icon } from "../../../design/Icon";
import { preferences } from "../../../lib/preferences";
import { readVersion } from "../../../lib/version";
import { snapshotsQuery } from "../queries";
import type { Desk } from "../useDesk";
import { versionName } from "../versions";
import style from "./Versions.module.css";

export function VersionBar({ desk }: { readonly desk: Desk }) {
  const { state, place, change, setOpened } = desk;
  const snapshots = useQuery(snapshotsQuery(place.organization, place.id)).data ?? [];
  const zone = preferences.value.zone;
  if (state.version === "" && state.compare === "") return null;
  const shown = versionName(state.version, snapshots, zone);
  if (state.compare !== "") {
    return (
      <div className={style["bar"]} role="region" aria-label="Comparison of versions">
        <Icon name="history" />
        <span>
          From <strong>{versionName(state.compare, snapshots, zone)}</strong> to <strong>{shown}</strong>. Read only.
        </span>
        {state.version !== "" && (
          <Button onClick={() => change({ version: state.compare, compare: state.version })}>Swap</Button>
        )}
        <Button onClick={() => change({ compare: "" })}>End the comparison</Button>
      </div>
    );
  }
  const isUnknown = readVersion(state.version).kind === "unknown";
  return (
    <div className={style["bar"]} role="region" aria-label="Version">
      <Icon name="history" />
      <span>
        {isUnknown ? (
          <>
            <strong>{state.version}</strong> is not a version. A version is a moment or a transaction id.
          </>
        ) : (
          <>
            The dataset as of <strong>{shown}</strong>. Read only.
          </>
        )}
      </span>
      {!isUnknown && (
        <>
          <Button onClick={() => change({ version: "", compare: state.version })}>Compare with now</Button>
          <Button onClick={() => setOpened("restore")}>Restore</Button>
        </>
      )}
      <Button onClick={() => change({ version: "" })}>Show now</Button>
    </div>
  );
}
