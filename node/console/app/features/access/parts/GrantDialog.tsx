// The dialog that grants the same to several people and groups.
import { useState } from "react";
import { KINDS, type Grant, type Named } from "../../../api/access";
import { toggled } from "../../../api/people";
import { Dialog } from "../../../design/Dialog";
import style from "../access.module.css";
import type { AskedObject } from "../queries";
import { changesOf, giftsTo, type Grantee } from "../rows";
import { objectWords, type NameOf } from "../words";
import { Changes } from "./Changes";
import { Gifts } from "./Gifts";

/** Somebody who can be chosen. */
export interface Candidate extends Grantee {
  readonly name: string;
  readonly detail: string;
}

interface GrantDialogProps {
  readonly organization: string;
  readonly object: AskedObject;
  readonly candidates: readonly Candidate[];
  readonly grants: readonly Grant[];
  readonly roles: readonly Named[];
  readonly nameOf: NameOf;
  readonly onClose: () => void;
}

const MOST = 50;

interface WhomProps {
  readonly candidates: readonly Candidate[];
  readonly chosen: ReadonlySet<string>;
  readonly onToggle: (id: string) => void;
}

/** The choice of people and groups: those chosen, then the first that fit what was typed. */
function Whom({ candidates, chosen, onToggle }: WhomProps) {
  const [filter, setFilter] = useState("");
  const wanted = filter.trim().toLowerCase();
  const fit = candidates.filter(({ id, name, detail }) => !chosen.has(id) && `${name}\n${detail}`.toLowerCase().includes(wanted));
  const shown = [...candidates.filter(({ id }) => chosen.has(id)), ...fit.slice(0, MOST)];
  return (
    <>
      <input
        type="search"
        className={style["only"]}
        aria-label="Find people and groups"
        placeholder="Find people and groups"
        autoComplete="off"
        autoFocus
        value={filter}
        onChange={(event) => setFilter(event.currentTarget.value)}
      />
      <fieldset className={style["whom"]}>
        <legend>People and groups</legend>
        {shown.map(({ id, name, detail }) => (
          <label key={id}>
            <input type="checkbox" checked={chosen.has(id)} onChange={() => onToggle(id)} />
            <span>
              {name} <span className={style["soft"]}>{detail}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {fit.length > MOST && <p className={style["soft"]}>{fit.length - MOST} more fit. Type more of the name.</p>}
    </>
  );
}

export function GrantDialog({ organization, object, candidates, grants, roles, nameOf, onClose }: GrantDialogProps) {
  const [whom, setWhom] = useState<ReadonlySet<string>>(new Set());
  const [gifts, setGifts] = useState<ReadonlySet<string>>(new Set());
  const [restrict, setRestrict] = useState("");
  const changes = candidates
    .filter(({ id }) => whom.has(id))
    .flatMap((one) => {
      const before = giftsTo(one, grants);
      return changesOf(one, before, new Set([...before, ...gifts]));
    });
  return (
    <Dialog title={`Grant access to ${objectWords(object, nameOf)}`} form="wide" onClose={onClose}>
      <div className={style["part"]}>
        <Whom candidates={candidates} chosen={whom} onToggle={(id) => setWhom(toggled(whom, id))} />
        <Gifts
          legend="What they may do"
          restrict={restrict === "" ? null : restrict}
          roles={roles}
          chosen={gifts}
          more={[...gifts]}
          onToggle={(key) => setGifts(toggled(gifts, key))}
        />
        <div className={style["picker"]}>
          <label>
            The permissions are for
            <select value={restrict} onChange={(event) => setRestrict(event.currentTarget.value)}>
              <option value="">everything in it</option>
              {KINDS.map(([kind, title]) => (
                <option key={kind} value={kind}>
                  {title.toLowerCase()} only
                </option>
              ))}
            </select>
          </label>
        </div>
        <Changes organization={organization} object={object} changes={changes} nameOf={nameOf} onDone={onClose} onClose={onClose} />
      </div>
    </Dialog>
  );
}
