// One person or group on one object: by which chains they may do what, and what is granted to them here.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { grantsQuery, originsQuery, type Grant, type Named, type Origin } from "../../../api/access";
import { toggled } from "../../../api/people";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { preferences } from "../../../lib/preferences";
import { day, parseMoment } from "../../../lib/time";
import style from "../access.module.css";
import type { AskedObject } from "../queries";
import { chainsOf, changesOf, giftsTo, type Chain, type Subject } from "../rows";
import { chainSteps, objectWords, originWords, type NameOf } from "../words";
import { Changes } from "./Changes";
import { Gifts } from "./Gifts";

interface SubjectDialogProps {
  readonly organization: Named;
  readonly object: AskedObject;
  readonly subject: Subject;
  readonly roles: readonly Named[];
  /** What the person who looks may do on the object. */
  readonly rights: readonly string[];
  readonly nameOf: NameOf;
  readonly onClose: () => void;
}

const dayOf = (at: string): string => {
  const moment = parseMoment(at);
  return moment === null ? at : day(moment, preferences.value.zone);
};

interface ChainsProps extends Pick<SubjectDialogProps, "organization" | "subject" | "nameOf"> {}

/** The chains, each in a line of words. */
function Chains({ organization, subject, nameOf }: ChainsProps) {
  const chains = chainsOf(subject.ways);
  const ids = [...new Set(chains.flatMap(({ way }) => (way.grant === null ? [] : [way.grant])))].sort();
  const origins: ReadonlyMap<string, Origin> = useQuery(originsQuery(organization.name, organization.id, ids)).data ?? new Map();
  const words = (chain: Chain): string => {
    const origin = originWords(origins.get(chain.way.grant ?? ""), dayOf);
    const steps = chainSteps(chain, nameOf).join(" – ");
    return `${subject.name}: ${steps}${origin === "" ? "" : `, ${origin}`}`;
  };
  if (chains.length === 0) return <p>{subject.name} may do nothing here.</p>;
  return (
    <ul className={style["chains"]} aria-label="Why">
      {chains.map((chain) => (
        <li key={words(chain)} data-inherited={chain.way.isInherited}>
          {words(chain)}
        </li>
      ))}
    </ul>
  );
}

interface EditProps extends SubjectDialogProps {
  readonly grants: readonly Grant[];
}

/** What is granted to them on the object itself, to change. */
function Edit({ organization, object, subject, roles, nameOf, grants, onClose }: EditProps) {
  const before = giftsTo(subject, grants);
  const [edited, setEdited] = useState<ReadonlySet<string> | null>(null);
  const after = edited ?? before;
  return (
    <div className={style["part"]}>
      <Gifts
        legend={`Granted to ${subject.name} here`}
        restrict={null}
        roles={roles}
        chosen={after}
        more={[...before]}
        onToggle={(key) => setEdited(toggled(after, key))}
      />
      <Changes
        organization={organization.name}
        object={object}
        changes={changesOf(subject, before, after)}
        nameOf={nameOf}
        onDone={() => setEdited(null)}
        onClose={onClose}
      />
    </div>
  );
}

export function SubjectDialog(props: SubjectDialogProps) {
  const { organization, object, subject, rights, nameOf, onClose } = props;
  const mayEdit = rights.includes("create_acls") || rights.includes("delete_acls");
  const grants = useQuery({ ...grantsQuery(organization.name, object.kind, object.id), enabled: mayEdit }).data;
  return (
    <Dialog title={`${subject.name} on ${objectWords({ kind: object.kind, id: object.id }, nameOf)}`} form="wide" onClose={onClose}>
      <Chains organization={organization} subject={subject} nameOf={nameOf} />
      {mayEdit && grants !== undefined ? (
        <Edit {...props} grants={grants} />
      ) : (
        <DialogActions>
          <Button onClick={onClose}>Close</Button>
        </DialogActions>
      )}
    </Dialog>
  );
}
