// Where the replicas of the shards are: tables of nodes by shards, in blocks that are folded where there are many.
import { useState } from "react";
import type { ClusterNode, ClusterState } from "../../../api/cluster";
import { Chip } from "../../../design/Chip";
import { classes } from "../../../design/classes";
import style from "../screen.module.css";
import { blocksOf, cellOf, cellText, nodesOf, type Block, type Cell } from "../state";

/** A replica as a sign: a dot leads, a ring follows, a dashed ring learns. A cross or a bar says that something is wrong. */
export function Sign({ kind, trouble }: Pick<Cell, "kind" | "trouble">) {
  if (kind === "none") return null;
  return (
    <svg className={classes(style["sign"], trouble !== null && style["troubled"])} viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r={kind === "leader" ? 4.5 : 4} className={style[kind]} />
      {trouble === "silent" && <path d="M2 2 14 14M14 2 2 14" />}
      {trouble === "behind" && <path d="M2 15H14" />}
    </svg>
  );
}

const LEGEND: readonly (readonly [string, Pick<Cell, "kind" | "trouble">])[] = [
  ["leads", { kind: "leader", trouble: null }],
  ["follows", { kind: "follower", trouble: null }],
  ["learns", { kind: "learner", trouble: null }],
  ["behind", { kind: "follower", trouble: "behind" }],
  ["does not answer", { kind: "follower", trouble: "silent" }],
];

function BlockTable({ block, nodes }: { readonly block: Block; readonly nodes: readonly ClusterNode[] }) {
  return (
    <div className={style["scroll"]} tabIndex={0} role="region" aria-label={`Replicas of ${block.title}`}>
      <table className={style["shards"]}>
        <caption className="only-spoken">Replicas of {block.title}</caption>
        <thead>
          <tr>
            <td />
            {block.groups.map(({ shard, leader }) => (
              <th key={shard} scope="col" className={classes(leader === null && style["bad"])} title={leader === null ? "No leader" : undefined}>
                <span className="only-spoken">{shard === null ? "Catalog" : "Shard "}</span>
                {shard === null ? <span aria-hidden="true">C</span> : shard}
                {leader === null && <span className="only-spoken">, no leader</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node.id}>
              <th scope="row">Node {node.id}</th>
              {block.groups.map((group) => {
                const cell = cellOf(group, node);
                const words = cellText(cell);
                return (
                  <td key={group.shard} title={`${group.shard === null ? "Catalog" : `Shard ${group.shard}`}: ${words}`}>
                    <Sign {...cell} />
                    <span className="only-spoken">{words}</span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function FoldedBlock({ block, nodes }: { readonly block: Block; readonly nodes: readonly ClusterNode[] }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? block.isOpen;
  return (
    <div className={style["block"]}>
      <button type="button" className={style["fold"]} aria-expanded={isOpen} onClick={() => setChosen(!isOpen)}>
        {block.title}
        {block.troubled > 0 ? <Chip tone="bad">{block.troubled} not in order</Chip> : <Chip>In order</Chip>}
      </button>
      {isOpen && <BlockTable block={block} nodes={nodes} />}
    </div>
  );
}

export function Shards({ state }: { readonly state: ClusterState }) {
  const nodes = nodesOf(state);
  return (
    <section className={style["part"]} aria-label="Shards">
      <h2>Shards</h2>
      <ul className={style["legend"]} aria-label="Signs">
        {LEGEND.map(([words, sign]) => (
          <li key={words}>
            <Sign {...sign} /> {words}
          </li>
        ))}
      </ul>
      <div className={style["blocks"]}>
        {blocksOf(state).map((block) => (
          <FoldedBlock key={block.title} block={block} nodes={nodes} />
        ))}
      </div>
    </section>
  );
}
