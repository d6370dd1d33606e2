// The state of a cluster in words and figures: its tiles, the replicas of its shards, and the commands that change it.
import type { ClusterNode, ClusterState, Replica, ShardGroup } from "../../api/cluster";
import { exactCount } from "../../lib/numbers";

/** A replica that lacks more entries than this is behind, as the server counts it. */
const CLOSE = 200;

export const isRemoved = (node: ClusterNode): boolean => node.state === "removed";

export const nodesOf = (state: ClusterState): readonly ClusterNode[] => state.nodes.filter((node) => !isRemoved(node));

/** How many entries a replica lacks; null if that is not known. */
export function lagOf({ applied, replicas }: ShardGroup, { matched }: Replica): number | null {
  const last = applied ?? replicas.reduce<number | null>((most, one) => (one.matched === null ? most : Math.max(most ?? 0, one.matched)), null);
  return last === null || matched === null ? null : Math.max(0, last - matched);
}

export interface Cell {
  readonly kind: "leader" | "follower" | "learner" | "none";
  /** Why the replica is not as it should be. */
  readonly trouble: "silent" | "behind" | null;
  readonly lag: number | null;
}

const EMPTY: Cell = { kind: "none", trouble: null, lag: null };

/** What a node has of a shard. */
export function cellOf(group: ShardGroup, node: ClusterNode): Cell {
  const replica = group.replicas.find((one) => one.node === node.id);
  if (replica === undefined) return EMPTY;
  const isLeader = group.leader === node.id;
  const lag = isLeader ? 0 : lagOf(group, replica);
  const kind = isLeader ? "leader" : replica.isVoter ? "follower" : "learner";
  return { kind, trouble: !node.answers ? "silent" : lag === null || lag > CLOSE ? "behind" : null, lag };
}

/** A cell as a screen reader says it. */
export function cellText({ kind, trouble, lag }: Cell): string {
  const behind = lag === null ? "behind" : `${exactCount(lag)} behind`;
  if (kind === "none") return "no replica";
  return trouble === null ? kind : `${kind}, ${trouble === "silent" ? "does not answer" : behind}`;
}

export const nameOf = ({ shard }: ShardGroup): string => (shard === null ? "the catalog" : `shard ${shard}`);

/** How many voters of a group answer. */
const liveVoters = (group: ShardGroup, nodes: readonly ClusterNode[]): number =>
  group.replicas.filter(({ node, isVoter }) => isVoter && nodes.some(({ id, answers }) => id === node && answers)).length;

/** The groups that have fewer voters that answer than they should have, or no leader. */
export function shortOf(state: ClusterState): readonly ShardGroup[] {
  const nodes = nodesOf(state);
  const wanted = Math.min(state.replicas ?? nodes.length, nodes.length);
  return state.groups.filter((group) => group.leader === null || liveVoters(group, nodes) < wanted);
}

export interface Lag {
  readonly entries: number;
  readonly group: ShardGroup;
  readonly node: string;
}

/** The replica that lacks the most entries; null if none is known to lack any. */
export function worstLag({ groups }: ClusterState): Lag | null {
  let worst: Lag | null = null;
  for (const group of groups) {
    for (const replica of group.replicas) {
      const entries = replica.node === group.leader ? 0 : (lagOf(group, replica) ?? 0);
      if (entries > (worst?.entries ?? 0)) worst = { entries, group, node: replica.node };
    }
  }
  return worst;
}

export interface Tile {
  readonly title: string;
  readonly value: string;
  readonly isBad: boolean;
  /** What to know besides, in words. */
  readonly said: string;
}

export function tilesOf(state: ClusterState): readonly Tile[] {
  const nodes = nodesOf(state);
  const silent = nodes.filter(({ answers }) => !answers);
  const short = shortOf(state);
  const lag = worstLag(state);
  return [
    {
      title: "Quorum",
      value: state.hasQuorum ? "Yes" : "No",
      isBad: !state.hasQuorum,
      said: state.hasQuorum ? "A majority answers" : "Nothing can be changed",
    },
    {
      title: "Settled",
      value: state.isSettled ? "Yes" : "No",
      isBad: !state.isSettled,
      said: state.isSettled ? "Every replica is in its place" : `${exactCount(state.unsettled.length)} ${state.unsettled.length === 1 ? "reason" : "reasons"}, below`,
    },
    {
      title: "Nodes",
      value: silent.length === 0 ? exactCount(nodes.length) : `${exactCount(nodes.length - silent.length)} of ${exactCount(nodes.length)}`,
      isBad: silent.length > 0,
      said: silent.length === 0 ? "All answer" : `Silent: ${silent.map(({ id }) => id).join(", ")}`,
    },
    {
      title: "Short of replicas",
      value: exactCount(short.length),
      isBad: short.length > 0,
      said: `of ${exactCount(state.groups.filter(({ shard }) => shard !== null).length)} shards and the catalog`,
    },
    {
      title: "Worst lag",
      value: exactCount(lag?.entries ?? 0),
      isBad: (lag?.entries ?? 0) > CLOSE,
      said: lag === null ? "entries" : `entries: ${nameOf(lag.group)}, node ${lag.node}`,
    },
  ];
}

const BLOCK = 16;
/** How many blocks are open without a reason. */
const OPEN_BLOCKS = 4;

export interface Block {
  readonly title: string;
  readonly groups: readonly ShardGroup[];
  /** How many of its groups are not as they should be. */
  readonly troubled: number;
  /** Whether it is open at first. */
  readonly isOpen: boolean;
}

function titleOf(groups: readonly ShardGroup[]): string {
  const shards = groups.flatMap(({ shard }) => (shard === null ? [] : [shard]));
  const range = shards.length === 0 ? "" : shards.length === 1 ? `shard ${shards[0]}` : `shards ${shards[0]} to ${shards.at(-1)}`;
  const title = [groups.length > shards.length ? "catalog" : "", range].filter((part) => part !== "").join(", ");
  return title.charAt(0).toUpperCase() + title.slice(1);
}

/** The groups in blocks, the catalog before the first shards. Of many blocks only those with trouble are open. */
export function blocksOf(state: ClusterState): readonly Block[] {
  const sorted = state.groups.toSorted((a, b) => (a.shard ?? -1) - (b.shard ?? -1));
  const catalog = sorted.filter(({ shard }) => shard === null).length;
  const nodes = nodesOf(state);
  const blocks: Block[] = [];
  for (let at = 0; at < sorted.length; ) {
    const end = at === 0 ? BLOCK + catalog : at + BLOCK;
    const groups = sorted.slice(at, end);
    const isTroubled = (group: ShardGroup): boolean =>
      group.leader === null || group.isChanging || nodes.some((node) => cellOf(group, node).trouble !== null);
    const troubled = groups.filter(isTroubled).length;
    const isFew = sorted.length <= OPEN_BLOCKS * BLOCK + catalog;
    blocks.push({ title: titleOf(groups), groups, troubled, isOpen: isFew || troubled > 0 });
    at = end;
  }
  return blocks;
}

/** Numbers in order, with runs drawn together: `1 to 3, 7`. */
export function runsText(numbers: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last !== undefined && number <= last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? String(first) : `${first} to ${last}`)).join(", ");
}

/** The shards that a node leads, in words. */
export function ledText({ groups }: ClusterState, node: string): string {
  const led = groups.filter(({ leader }) => leader === node);
  const shards = runsText(led.flatMap(({ shard }) => (shard === null ? [] : [shard])));
  return [led.some(({ shard }) => shard === null) ? "the catalog" : "", shards].filter((part) => part !== "").join(", ") || "none";
}

export interface Advice {
  /** What the command does, in a sentence. */
  readonly title: string;
  readonly command: string;
}

/** The commands that change something about a node. The page itself changes nothing. */
export function adviceOf(state: ClusterState, node: ClusterNode): readonly Advice[] {
  if (isRemoved(node) || !/^\d+$/.test(node.id)) return [];
  const hasVoters = (id: string): boolean => state.groups.some(({ replicas }) => replicas.some((one) => one.node === id && one.isVoter));
  const spare = nodesOf(state).filter(({ id, answers }) => id !== node.id && /^\d+$/.test(id) && answers && !hasVoters(id));
  const drains: Advice =
    node.state === "draining"
      ? { title: "Let it lead again.", command: `assay cluster undrain ${node.id}` }
      : { title: "Move its leads away before a planned stop.", command: `assay cluster drain ${node.id}` };
  const replaces: readonly Advice[] =
    spare.length > 0
      ? spare.map(({ id }) => ({ title: `Replace it by node ${id}, for good.`, command: `assay cluster replace ${node.id} ${id}` }))
      : [{ title: "Let another machine join, which can replace it then.", command: "assay cluster token" }];
  return [...(node.answers ? [drains] : []), ...replaces, { title: "Remove it for good.", command: `assay cluster remove ${node.id}` }];
}
