// One entry of the audit log: who did what, before and after, and its place in the chain.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, type ReactNode } from "react";
import type { AuditEntry, AuditScope } from "../../../api/audit";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import { IconButton } from "../../../design/Button";
import { Copy } from "../../../design/Copy";
import { Diff } from "../../../design/Diff";
import { Empty } from "../../../design/Empty";
import { Json } from "../../../design/Json";
import { withKeys } from "../../../design/Kbd";
import { Loaded } from "../../../design/Loaded";
import { Marked } from "../../../design/Marked";
import { Skeleton } from "../../../design/Skeleton";
import { printJson } from "../../../lib/json";
import { preferences } from "../../../lib/preferences";
import { clock, day, fullMoment, parseMoment } from "../../../lib/time";
import { entryQuery } from "../queries";
import { actionWords, actorWords, changedNames, changeOf, changeWords, kindWords, objectWords, otherDetails, type Names } from "../words";
import style from "./Entry.module.css";

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Id({ id, what }: { readonly id: string; readonly what: string }) {
  return (
    <span className={style["id"]}>
      <code>{id}</code>
      <Copy text={id} what={what} />
    </span>
  );
}

interface ShownProps {
  readonly entry: AuditEntry;
  readonly names: Names;
}

function Facts({ entry, names }: ShownProps) {
  const { actor, created, objectId, objectType } = entry;
  const moment = parseMoment(created);
  const { zone } = preferences.value;
  const object = objectWords(entry, names);
  return (
    <dl className={style["facts"]}>
      <Fact name="When">
        <time dateTime={created ?? undefined} title={fullMoment(moment)}>
          {moment === null ? "-" : `${day(moment, zone)} ${clock(moment, zone)}`}
        </time>
      </Fact>
      <Fact name="Who">
        <Marked text={actorWords(actor, names)} />
        {actor.credential !== null && <span className={style["faint"]}> by {kindWords(actor.credential)}</span>}
      </Fact>
      {actor.impersonatorId !== null && (
        <Fact name="Acting as them">
          <Marked text={names.get(actor.impersonatorId) ?? actor.impersonatorId} />
        </Fact>
      )}
      {actor.credentialId !== null && (
        <Fact name="Credential">
          <Id id={actor.credentialId} what="the id of the credential" />
        </Fact>
      )}
      <Fact name="Object">
        {kindWords(objectType)} {object !== "" && <Marked text={object} />}
        <Id id={objectId} what="the id of the object" />
      </Fact>
    </dl>
  );
}

/** What is known of the change: both sides, one of them, or the names of the fields. */
function Changed({ entry }: Pick<ShownProps, "entry">) {
  const change = changeOf(entry);
  if (change === null) {
    const fields = changedNames(entry);
    if (fields === null && entry.action === "create") return <p>The log does not keep what was in it.</p>;
    return fields === null || fields.length === 0 ? null : (
      <p>
        Changed fields, whose values are not kept: <code>{fields.join(", ")}</code>
      </p>
    );
  }
  const { before, after } = change;
  if (before === null || after === null) {
    const side = before === null ? "After" : "Before";
    return (
      <section aria-label={side}>
        <h3>{side}</h3>
        <Json value={before ?? after} label={side} rows={24} />
      </section>
    );
  }
  return (
    <section aria-label="Before and after">
      <h3>Before and after</h3>
      <Diff before={printJson(before)} after={printJson(after)} />
    </section>
  );
}

function Shown({ entry, names }: ShownProps) {
  const others = otherDetails(entry);
  const words = entry.objectType === "acl" ? changeWords(entry, names) : "";
  return (
    <div className={style["content"]}>
      {words !== "" && (
        <p className={style["words"]}>
          <Marked text={words} />
        </p>
      )}
      <Facts entry={entry} names={names} />
      <Changed entry={entry} />
      {others !== null && (
        <section aria-label="Details">
          <h3>Details</h3>
          <Json value={others} label="Details" rows={24} />
        </section>
      )}
      <details className={style["whole"]}>
        <summary>The whole entry</summary>
        <Json value={entry.whole} label="Entry" rows={24} />
      </details>
    </div>
  );
}

interface EntryPanelProps {
  readonly scope: AuditScope;
  readonly sequence: number;
  /** The entry, if the list holds it. */
  readonly listed: AuditEntry | undefined;
  readonly names: Names;
  /** What is wrong with the chain at this entry; null if nothing is. */
  readonly fault: string | null;
  readonly onClose: () => void;
}

export function EntryPanel({ scope, sequence, listed, names, fault, onClose }: EntryPanelProps) {
  const query = useQuery({ ...entryQuery(scope, sequence), enabled: listed === undefined });
  const element = useRef<HTMLElement>(null);
  useEffect(() => element.current?.scrollTo({ top: 0 }), [sequence]);
  const title = listed ?? query.data;
  return (
    <aside ref={element} className={style["panel"]} aria-label={`Entry #${sequence}`}>
      <header className={style["head"]}>
        <h2>
          #{sequence}
          {title !== undefined && title !== null && ` ${actionWords(title.action)} · ${kindWords(title.objectType)}`}
        </h2>
        <IconButton icon="close" label="Close the entry" hint={withKeys("Close the entry", "Escape")} onClick={onClose} />
      </header>
      {fault !== null && (
        <p className={style["fault"]} role="alert">
          {fault}
        </p>
      )}
      {listed !== undefined ? (
        <Shown entry={listed} names={names} />
      ) : (
        <Loaded
          reading={readingOf(query)}
          skeleton={<Skeleton lines={[[12], [20], [16]]} />}
          onSignIn={() => void askToSignIn().then(() => query.refetch())}
        >
          {(entry) =>
            entry === null ? <Empty>The log has no entry #{sequence}.</Empty> : <Shown entry={entry} names={names} />
          }
        </Loaded>
      )}
    </aside>
  );
}
