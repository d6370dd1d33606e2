// An open node: its disk, memory and certificate, what it leads, and the commands that change something about it.
import { useEffect, useRef, type ReactNode } from "react";
import type { ClusterNode, ClusterState } from "../../../api/cluster";
import { IconButton } from "../../../design/Button";
import { bytesText } from "../../../design/bytes";
import { Copy } from "../../../design/Copy";
import { Meter } from "../../../design/Meter";
import { NOTHING } from "../../../lib/numbers";
import { preferences } from "../../../lib/preferences";
import { day, fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import style from "../screen.module.css";
import { adviceOf, ledText } from "../state";
import { StateChip } from "./Nodes";

function Fact({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className={style["fact"]}>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const WARN_MS = 14 * 86_400_000;

function Certificate({ ends }: { readonly ends: Date }) {
  const left = ends.getTime() - now.value;
  return (
    <span title={fullMoment(ends)} className={left < WARN_MS ? style["bad"] : undefined}>
      {day(ends, preferences.value.zone)}
      {left < 0 ? ", it has ended" : left < WARN_MS ? ", it ends soon" : ""}
    </span>
  );
}

/** How much of a whole is used, with a bar; without a whole only the amount. */
function Amount({ used, whole }: { readonly used: number | null; readonly whole: number | null }) {
  if (used === null || whole === null || whole <= 0) return <>{bytesText(used)}</>;
  const share = used / whole;
  return (
    <>
      {bytesText(used)} of {bytesText(whole)}
      <Meter share={share} tone={share >= 0.9 ? "bad" : share >= 0.8 ? "warn" : "none"} />
    </>
  );
}

interface NodePanelProps {
  readonly state: ClusterState;
  readonly node: ClusterNode;
  readonly onClose: () => void;
}

export function NodePanel({ state, node, onClose }: NodePanelProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const ends = parseMoment(node.certificateEnds);
  const started = parseMoment(node.started);
  const advice = adviceOf(state, node);
  return (
    <aside className={style["panel"]} aria-label={`Node ${node.id}`} onKeyDown={(event) => { if (event.key === "Escape") onClose(); }}>
      <header className={style["head"]}>
        <h2 ref={heading} tabIndex={-1}>Node {node.id}</h2>
        <StateChip node={node} />
        <IconButton icon="close" label="Close the node" onClick={onClose} />
      </header>
      <dl className={style["facts"]}>
        <Fact title="Address">{node.address ?? NOTHING}</Fact>
        <Fact title="Disk"><Amount used={node.disk === null || node.diskFree === null ? null : node.disk - node.diskFree} whole={node.disk} /></Fact>
        <Fact title="Memory"><Amount used={node.memory} whole={node.memoryMax} /></Fact>
        <Fact title="Version">{node.version ?? NOTHING}</Fact>
        <Fact title="Started">{started === null ? NOTHING : <span title={fullMoment(started)}>{shortMoment(started, now.value, preferences.value.zone)}</span>}</Fact>
        <Fact title="Certificate until">{ends === null ? NOTHING : <Certificate ends={ends} />}</Fact>
        <Fact title="Leads shards">{ledText(state, node.id)}</Fact>
      </dl>
      {advice.length > 0 && (
        <section className={style["part"]} aria-label="Commands">
          <h3>Commands</h3>
          <p className={style["said"]}>This page changes nothing. Run these on the machine of a node.</p>
          <ul className={style["commands"]}>
            {advice.map(({ title, command }) => (
              <li key={command}>
                {title}
                <span className={style["command"]}>
                  <code>{command}</code>
                  <Copy text={command} what={`the command ${command}`} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </aside>
  );
}
