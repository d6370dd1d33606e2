// The nodes of the cluster as a table. The name of a node opens it.
import type { ClusterNode, ClusterState } from "../../../api/cluster";
import { bytesText } from "../../../design/bytes";
import { Chip } from "../../../design/Chip";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import { NOTHING } from "../../../lib/numbers";
import style from "../screen.module.css";
import { isRemoved } from "../state";

export function StateChip({ node }: { readonly node: ClusterNode }) {
  if (isRemoved(node)) return <Chip>Removed</Chip>;
  if (!node.answers) return <Chip tone="bad"><Icon name="warning" />Does not answer</Chip>;
  return node.state === "draining" ? <Chip tone="warn">Draining</Chip> : <Chip tone="good">Answers</Chip>;
}

export const nodeButtonId = (node: string): string => `node-${node}`;

interface NodesProps {
  readonly state: ClusterState;
  readonly open: string;
  readonly onOpen: (node: string) => void;
}

export function Nodes({ state, open, onOpen }: NodesProps) {
  return (
    <section className={style["part"]} aria-label="Nodes">
      <h2>Nodes</h2>
      <div className={style["scroll"]} tabIndex={0} role="region" aria-label="Table of the nodes">
        <table className={style["nodes"]}>
          <caption className="only-spoken">Nodes</caption>
          <thead>
            <tr>
              {["Node", "State", "Leads", "Disk free", "Memory", "Version", "Address"].map((title) => (
                <th key={title} scope="col">{title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {state.nodes.map((node) => (
              <tr key={node.id} className={classes(node.id === open && style["open"])}>
                <th scope="row">
                  <button
                    type="button"
                    id={nodeButtonId(node.id)}
                    className={style["name"]}
                    aria-expanded={node.id === open}
                    onClick={() => onOpen(node.id === open ? "" : node.id)}
                  >
                    Node {node.id}
                  </button>
                </th>
                <td><StateChip node={node} /></td>
                <td>{node.leads}</td>
                <td>{bytesText(node.diskFree)}</td>
                <td>{bytesText(node.memory)}</td>
                <td>{node.version ?? NOTHING}</td>
                <td>{node.address ?? NOTHING}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
