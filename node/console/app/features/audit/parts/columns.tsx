// The columns of the audit log.
import type { AuditEntry } from "../../../api/audit";
import type { GridColumn } from "../../../design/GridTypes";
import { Icon } from "../../../design/Icon";
import { Marked } from "../../../design/Marked";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { actionWords, actorWords, changeWords, kindWords, objectWords, type Names } from "../words";
import style from "../screen.module.css";

/** When an entry was written. It alone follows the clock. */
function When({ at }: { readonly at: string | null }) {
  const moment = parseMoment(at);
  return <span title={fullMoment(moment)}>{shortMoment(moment, now.value, preferences.value.zone)}</span>;
}

function Text({ text }: { readonly text: string }) {
  return (
    <span title={text}>
      <Marked text={text} />
    </span>
  );
}

/** The columns; `faulty` is the number of the entry at which the chain is broken, or 0. */
export const auditColumns = (names: Names, faulty: number): readonly GridColumn<AuditEntry>[] => [
  {
    id: "sequence",
    title: "#",
    width: 64,
    align: "end",
    cell: ({ sequence }) =>
      sequence === faulty ? (
        <span className={style["faulty"]} title="The chain is broken here">
          <Icon name="warning" />
          {sequence}
        </span>
      ) : (
        sequence
      ),
  },
  { id: "created", title: "When", width: 124, cell: ({ created }) => <When at={created} /> },
  { id: "who", title: "Who", width: 140, grow: 1, cell: ({ actor }) => <Text text={actorWords(actor, names)} /> },
  { id: "action", title: "Action", width: 136, cell: ({ action }) => actionWords(action) },
  {
    id: "object",
    title: "Object",
    width: 180,
    grow: 1.5,
    cell: (entry) => (
      <>
        <span className={style["faint"]}>{kindWords(entry.objectType)}</span>{" "}
        <Text text={objectWords(entry, names)} />
      </>
    ),
  },
  { id: "change", title: "What changed", width: 180, grow: 2, cell: (entry) => <Text text={changeWords(entry, names)} /> },
];
