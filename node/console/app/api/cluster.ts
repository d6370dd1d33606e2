// The state of the cluster, as one of its nodes sees it. Only operators may read it.
import { call } from "./client";
import { NoAnswer, UnknownForm } from "../lib/errors";
import { count, flag, list, record, textOrNull, text, type Fields } from "./narrow";

export interface ClusterNode {
  readonly id: string;
  readonly address: string | null;
  readonly state: string;
  readonly answers: boolean;
  readonly leads: number;
  readonly version: string | null;
  readonly memory: number | null;
  readonly memoryMax: number | null;
  readonly disk: number | null;
  readonly diskFree: number | null;
  /** Moments as ISO text. */
  readonly certificateEnds: string | null;
  readonly started: string | null;
}

export interface Replica {
  readonly node: string;
  readonly isVoter: boolean;
  /** The last entry of its log, according to the leader. */
  readonly matched: number | null;
}

export interface ShardGroup {
  /** Null for the catalog. */
  readonly shard: number | null;
  readonly leader: string | null;
  readonly applied: number | null;
  readonly isChanging: boolean;
  readonly replicas: readonly Replica[];
}

export interface ClusterState {
  readonly cluster: string;
  /** The node that answered. */
  readonly node: string;
  /** The wanted number of replicas of each shard. */
  readonly replicas: number | null;
  readonly hasQuorum: boolean;
  readonly isSettled: boolean;
  readonly unsettled: readonly string[];
  readonly nodes: readonly ClusterNode[];
  readonly groups: readonly ShardGroup[];
}

const numberOrNull = (fields: Fields, key: string): number | null => {
  const value = fields[key];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

/** An id of a node, which is a number or a text. */
function idOrNull(fields: Fields, key: string): string | null {
  const value = fields[key];
  return typeof value === "number" || typeof value === "string" ? String(value) : null;
}

function idOf(fields: Fields, key: string): string {
  const id = idOrNull(fields, key);
  if (id === null) throw new UnknownForm(key);
  return id;
}

function readNode(value: unknown): ClusterNode {
  const node = record(value, "node");
  return {
    id: idOf(node, "id"),
    address: textOrNull(node, "address"),
    state: text(node, "state"),
    answers: flag(node, "answers"),
    leads: count(node, "leads"),
    version: textOrNull(node, "version"),
    memory: numberOrNull(node, "memory_bytes"),
    memoryMax: numberOrNull(node, "memory_max_bytes"),
    disk: numberOrNull(node, "disk_total_bytes"),
    diskFree: numberOrNull(node, "disk_free_bytes"),
    certificateEnds: textOrNull(node, "certificate_ends"),
    started: textOrNull(node, "started"),
  };
}

function readReplica(value: unknown): Replica {
  const replica = record(value, "replica");
  return { node: idOf(replica, "node"), isVoter: replica["role"] === "voter", matched: numberOrNull(replica, "matched") };
}

function readGroup(value: unknown): ShardGroup {
  const group = record(value, "group");
  return {
    shard: numberOrNull(group, "shard"),
    leader: idOrNull(group, "leader"),
    applied: numberOrNull(group, "applied"),
    isChanging: flag(group, "changing"),
    replicas: list(group, "replicas").map(readReplica),
  };
}

export function readCluster(value: unknown): ClusterState {
  const state = record(value, "cluster");
  return {
    cluster: idOf(state, "cluster"),
    node: idOf(state, "node"),
    replicas: numberOrNull(state, "replicas"),
    hasQuorum: flag(state, "quorum"),
    isSettled: flag(state, "settled"),
    unsettled: list(state, "unsettled").map(String),
    nodes: list(state, "nodes").map(readNode),
    groups: list(state, "groups").map(readGroup),
  };
}

/** How long a node may take to answer, in milliseconds. One that hangs counts as one that does not answer. */
const PATIENCE_MS = 6000;

export async function askCluster(signal: AbortSignal): Promise<ClusterState> {
  const late = AbortSignal.timeout(PATIENCE_MS);
  try {
    return readCluster(await call("GET", "/console/cluster", { signal: AbortSignal.any([signal, late]) }));
  } catch (error) {
    throw late.aborted && !signal.aborted ? new NoAnswer() : error;
  }
}
