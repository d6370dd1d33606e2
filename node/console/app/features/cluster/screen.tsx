// The page of the cluster: whether all is well, its nodes, and where the replicas of its shards are. It changes nothing.
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "../../lib/errors";
import type { ClusterState } from "../../api/cluster";
import { askToSignIn } from "../../api/gate";
import { readingOf } from "../../api/queries";
import { classes } from "../../design/classes";
import { Empty } from "../../design/Empty";
import { Loaded } from "../../design/Loaded";
import { Skeleton } from "../../design/Skeleton";
import type { PagePlace } from "../../lib/pages";
import { preferences } from "../../lib/preferences";
import { navigate } from "../../lib/router";
import { clock } from "../../lib/time";
import type { Session } from "../../api/schema";
import { NodePanel } from "./parts/NodePanel";
import { nodeButtonId, Nodes } from "./parts/Nodes";
import { Shards } from "./parts/Shards";
import { clusterQuery } from "./queries";
import style from "./screen.module.css";
import { tilesOf } from "./state";
import { readClusterUrl, writeClusterUrl } from "./url";

function Tiles({ state }: { readonly state: ClusterState }) {
  return (
    <dl className={style["tiles"]} aria-label="State of the cluster">
      {tilesOf(state).map(({ title, value, isBad, said }) => (
        <div key={title} className={classes(style["tile"], isBad && style["bad"])}>
          <dt>{title}</dt>
          <dd className={style["value"]}>{value}</dd>
          <dd className={style["said"]}>{said}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Bars as high as the tiles and the first tables. */
const TILES = [22, 22, 22, 22, 22];
const NODE = [16, 16, 10, 14, 14, 12];
const BARS = [TILES, TILES, TILES, [], [12], NODE, NODE, [], [12], [60], [60]];

const REASONS = 8;

function Reasons({ reasons }: { readonly reasons: readonly string[] }) {
  if (reasons.length === 0) return null;
  const line = (reason: string) => <li key={reason}>{reason.charAt(0).toUpperCase() + reason.slice(1)}.</li>;
  return (
    <section className={style["part"]} aria-label="Why the cluster is not settled">
      <h2>Why it is not settled</h2>
      <ul className={style["reasons"]}>{reasons.slice(0, REASONS).map(line)}</ul>
      {reasons.length > REASONS && (
        <details>
          <summary>{reasons.length - REASONS} more</summary>
          <ul className={style["reasons"]}>{reasons.slice(REASONS).map(line)}</ul>
        </details>
      )}
    </section>
  );
}

export function ClusterScreen({ place }: { readonly place: PagePlace; readonly session: Session }) {
  const query = useQuery(clusterQuery);
  const { node } = readClusterUrl(place.query);
  const open = (id: string): void => {
    navigate(writeClusterUrl({ node: id }), "replace");
    if (id === "") document.getElementById(nodeButtonId(node))?.focus();
  };
  const isStale = query.error !== null;
  if (query.error instanceof ApiError && query.error.status === 403) {
    return (
      <div className={style["screen"]}>
        <h1 tabIndex={-1}>Cluster</h1>
        <Empty>
          Only operators see the cluster. Whoever runs the servers names them by their e-mail addresses in the setting{" "}
          <code>console.operators</code>.
        </Empty>
      </div>
    );
  }
  return (
    <div className={style["screen"]}>
      <header className={style["head"]}>
        <h1 tabIndex={-1}>Cluster</h1>
        {query.data !== undefined && (
          <p className={style["said"]}>
            As node {query.data.node} saw it at {clock(new Date(query.dataUpdatedAt), preferences.value.zone).slice(0, 8)}
          </p>
        )}
      </header>
      <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={BARS} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(state) => {
          const found = state.nodes.find(({ id }) => id === node);
          return (
            <div className={classes(style["body"], found !== undefined && style["withPanel"], isStale && style["stale"])}>
              <div className={style["main"]}>
                <Tiles state={state} />
                <Reasons reasons={state.unsettled} />
                <Nodes state={state} open={node} onOpen={open} />
                <Shards state={state} />
              </div>
              {found !== undefined && <NodePanel key={found.id} state={state} node={found} onClose={() => open("")} />}
            </div>
          );
        }}
      </Loaded>
    </div>
  );
}
