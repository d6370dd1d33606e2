// Tests what the page of the cluster makes of a state: tiles, signs, blocks, lag and commands.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readCluster, type ClusterState } from "../../api/cluster";
import { readAddress } from "../../lib/address";
import { adviceOf, blocksOf, cellOf, cellText, ledText, runsText, shortOf, tilesOf, worstLag } from "./state";
import { readClusterUrl, writeClusterUrl } from "./url";

interface Wishes {
  readonly shards?: number;
  readonly silent?: number;
  /** What the replica of node 3 lacks in shard 1. */
  readonly lag?: number;
  readonly nodes?: number;
}

/** A cluster of three nodes whose shards are led in turn. */
function stateOf({ shards = 4, silent = 0, lag = 0, nodes = 3 }: Wishes = {}): ClusterState {
  const ids = Array.from({ length: nodes }, (_, index) => index + 1);
  const voters = ids.slice(0, 3);
  const group = (shard: number | null, leader: number) => ({
    group: shard ?? 1,
    shard,
    leader,
    term: 2,
    applied: 1000,
    changing: false,
    replicas: voters.map((node) => ({ replica: node, node, role: "voter", matched: shard === 1 && node === 3 ? 1000 - lag : 1000 })),
  });
  return readCluster({
    cluster: "c",
    node: 1,
    replicas: 3,
    quorum: true,
    settled: silent === 0,
    unsettled: silent === 0 ? [] : [`node ${silent} does not answer`],
    nodes: ids.map((id) => ({ id, address: "h:1", state: "active", answers: id !== silent, leads: 1, version: "1", started: null })),
    groups: [group(null, 1), ...Array.from({ length: shards }, (_, shard) => group(shard, (shard % 2) + 1))],
  });
}

const valuesOf = (state: ClusterState): Readonly<Record<string, string>> =>
  Object.fromEntries(tilesOf(state).map(({ title, value, isBad }) => [title, isBad ? `${value}!` : value]));

test("the tiles of a cluster that is well, and of one with a silent node", () => {
  expect(valuesOf(stateOf())).toEqual({ Quorum: "Yes", Settled: "Yes", Nodes: "3", "Short of replicas": "0", "Worst lag": "0" });
  expect(valuesOf(stateOf({ silent: 3, lag: 250 }))).toEqual({
    Quorum: "Yes",
    Settled: "No!",
    Nodes: "2 of 3!",
    "Short of replicas": "5!",
    "Worst lag": "250!",
  });
});

test("a single node is not short of the replicas that it cannot have", () => {
  expect(shortOf(stateOf({ nodes: 1 }))).toEqual([]);
});

test("a cell says its role and what is wrong in words", () => {
  const state = stateOf({ silent: 2, lag: 300 });
  const [catalog, , second] = state.groups;
  const words = (group: typeof catalog, node: number): string | undefined => {
    const found = state.nodes[node - 1];
    return group && found && cellText(cellOf(group, found));
  };
  expect([words(catalog, 1), words(catalog, 2), words(second, 3)]).toEqual(["leader", "follower, does not answer", "follower, 300 behind"]);
  const [extra] = stateOf({ nodes: 4 }).nodes.slice(3);
  expect(catalog && extra && cellText(cellOf(catalog, extra))).toBe("no replica");
});

test("a small lag is no trouble, and the worst one is named", () => {
  const state = stateOf({ lag: 200 });
  expect(worstLag(state)).toMatchObject({ entries: 200, node: "3" });
  expect(blocksOf(state).map(({ troubled }) => troubled)).toEqual([0]);
  expect(worstLag(stateOf())).toBeNull();
});

test("few shards make open blocks; of many only those with trouble are open", () => {
  expect(blocksOf(stateOf({ shards: 16 })).map(({ title, isOpen }) => [title, isOpen])).toEqual([["Catalog, shards 0 to 15", true]]);
  const many = blocksOf(stateOf({ shards: 256, lag: 201 }));
  expect(many.length).toBe(16);
  expect(many.filter(({ isOpen }) => isOpen).map(({ title, troubled }) => [title, troubled])).toEqual([["Catalog, shards 0 to 15", 1]]);
  expect(many.at(-1)?.title).toBe("Shards 240 to 255");
});

test("every group is in one block", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 300 }), (shards) => {
      const state = stateOf({ shards });
      expect(blocksOf(state).flatMap(({ groups }) => groups)).toEqual(state.groups);
    }),
  );
});

test("runs of numbers are drawn together, and led shards named", () => {
  expect(runsText([7, 1, 2, 3])).toBe("1 to 3, 7");
  expect(ledText(stateOf(), "1")).toBe("the catalog, 0, 2");
  expect(ledText(stateOf(), "3")).toBe("none");
});

const commandsOf = (state: ClusterState, node: number, changed = {}): readonly string[] => {
  const found = state.nodes[node - 1];
  return found === undefined ? [] : adviceOf(state, { ...found, ...changed }).map(({ command }) => command);
};

test("commands have the names of nodes filled in", () => {
  expect(commandsOf(stateOf(), 2)).toEqual(["assay cluster drain 2", "assay cluster token", "assay cluster remove 2"]);
  expect(commandsOf(stateOf({ nodes: 4 }), 2, { state: "draining" })).toEqual([
    "assay cluster undrain 2",
    "assay cluster replace 2 4",
    "assay cluster remove 2",
  ]);
  expect(commandsOf(stateOf({ silent: 2 }), 2)).toEqual(["assay cluster token", "assay cluster remove 2"]);
  expect(commandsOf(stateOf(), 2, { state: "removed" })).toEqual([]);
  expect(commandsOf(stateOf(), 2, { id: "2; rm -rf /" })).toEqual([]);
});

test("the address keeps the open node", () => {
  fc.assert(
    fc.property(fc.string(), (node) => {
      const written = writeClusterUrl({ node });
      expect(readClusterUrl(readAddress(written)?.query ?? new URLSearchParams())).toEqual({ node });
    }),
  );
  expect(writeClusterUrl({ node: "" })).toBe("/app/cluster");
});
