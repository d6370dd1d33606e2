// The dialog of versions: snapshots, the last changes, and any moment.
import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { deleteSnapshot, type Snapshot } from "../../../api/snapshots";
import { problemOf } from "../../../lib/errors";
import { askToSignIn } from "../../../api/gate";
import { cache, readingOf } from "../../../api/queries";
import { Button, IconButton } from "../../../design/Button";
import { Dialog } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { Icon } from "../../../design/Icon";
import { Loaded } from "../../../design/Loaded";
import { Menu } from "../../../design/Menu";
import { Skeleton } from "../../../design/Skeleton";
import { toast } from "../../../design/Toast";
import { momentOf } from "../../../lib/version";
import { snapshotsQuery, type DatasetPlace } from "../queries";
import type { Desk } from "../useDesk";
import { isVersion, recentQuery } from "../versions";
import { copied, When } from "./listColumns";
import { rowWords } from "./SelectionBar";
import style from "./Versions.module.css";

const LINES = [[16, 14], [16, 14]];

interface VersionsProps {
  readonly desk: Desk;
  readonly onEdit: (snapshot: Snapshot | null) => void;
  readonly onClose: () => void;
}

interface GoProps {
  /** Shows a version. */
  readonly show: (version: string) => void;
  /** Compares a version with the shown one. */
  readonly compare: (version: string) => void;
}

async function remove({ organization, id }: DatasetPlace, snapshot: Snapshot): Promise<void> {
  try {
    await deleteSnapshot(organization, snapshot.id);
    toast(`The snapshot ${snapshot.name} is deleted. The version itself stays.`);
  } catch (error) {
    toast(`The snapshot was not deleted. ${problemOf(error, 0).text}`, true);
  }
  await cache.invalidateQueries({ queryKey: snapshotsQuery(organization, id).queryKey });
  await cache.invalidateQueries({ queryKey: ["dataset-snapshot-counts", organization] });
}

interface SnapshotItemProps extends GoProps {
  readonly place: DatasetPlace;
  readonly snapshot: Snapshot;
  readonly onEdit: () => void;
}

function SnapshotItem({ place, snapshot, show, compare, onEdit }: SnapshotItemProps) {
  const { name, description, transaction } = snapshot;
  return (
    <li className={style["item"]}>
      <div className={style["words"]}>
        <button type="button" className={style["open"]} onClick={() => show(transaction)}>
          {name}
        </button>
        {description !== "" && <span className={style["faint"]}>{description}</span>}
      </div>
      <span className={style["when"]}>
        <When at={momentOf(transaction)} />
      </span>
      <Button onClick={() => compare(transaction)}>Compare</Button>
      <Menu
        label={`Actions of ${name}`}
        isAlone
        button={<Icon name="more" />}
        items={[
          { id: "edit", title: "Rename and describe", run: onEdit },
          { id: "copy", title: "Copy the transaction id", run: () => void copied(transaction, "transaction id") },
          { id: "delete", title: "Delete the snapshot", run: () => void remove(place, snapshot) },
        ]}
      />
    </li>
  );
}

function Recent({ place, show, compare }: GoProps & { readonly place: DatasetPlace }) {
  const query = useQuery(recentQuery(place));
  if (query.data?.length === 0) return null;
  return (
    <section className={style["section"]} aria-labelledby="recent-changes">
      <h3 id="recent-changes">Last changes</h3>
      <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(found) => (
          <ul className={style["list"]}>
            {found.map(({ transaction, rows }) => (
              <li key={transaction} className={style["item"]}>
                <div className={style["words"]}>
                  <button type="button" className={style["open"]} onClick={() => show(transaction)}>
                    <When at={momentOf(transaction)} />
                  </button>
                  <span className={style["faint"]}>{rowWords(rows)} written</span>
                </div>
                <IconButton icon="copy" label={`Copy the transaction id ${transaction}`} onClick={() => void copied(transaction, "transaction id")} />
                <Button onClick={() => compare(transaction)}>Compare</Button>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </section>
  );
}

function AnyVersion({ show, compare }: GoProps) {
  const [typed, setTyped] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const run = (go: (version: string) => void): void => {
    if (isVersion(typed)) go(typed.trim());
    else setFault("Enter a moment such as 2026-05-04T10:00Z, or a transaction id.");
  };
  return (
    <form
      className={style["any"]}
      noValidate
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        run(show);
      }}
    >
      <Field
        label="Any moment or transaction"
        placeholder="2026-05-04T10:00Z"
        autoComplete="off"
        spellCheck={false}
        value={typed}
        fault={fault}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
          setFault(null);
        }}
      />
      <div className={style["anyActions"]}>
        <Button type="submit">Show</Button>
        <Button onClick={() => run(compare)}>Compare</Button>
      </div>
    </form>
  );
}

export function Versions({ desk, onEdit, onClose }: VersionsProps) {
  const { place, change } = desk;
  const query = useQuery(snapshotsQuery(place.organization, place.id));
  const go: GoProps = {
    show: (version) => {
      onClose();
      change({ version, compare: "" });
    },
    compare: (version) => {
      onClose();
      change({ compare: version });
    },
  };
  return (
    <Dialog title={`Versions of ${place.name}`} form="wide" onClose={onClose}>
      <section className={style["section"]} aria-labelledby="snapshots">
        <div className={style["sectionHead"]}>
          <h3 id="snapshots">Snapshots</h3>
          <Button icon="plus" onClick={() => onEdit(null)}>
            New snapshot
          </Button>
        </div>
        <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={LINES} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
          {(snapshots) => (
            <>
              {snapshots.length === 0 && <p className={style["faint"]}>There is no snapshot yet. A snapshot gives a version a name.</p>}
              <ul className={style["list"]}>
                {snapshots.map((snapshot) => (
                  <SnapshotItem key={snapshot.id} place={place} snapshot={snapshot} {...go} onEdit={() => onEdit(snapshot)} />
                ))}
              </ul>
            </>
          )}
        </Loaded>
      </section>
      <AnyVersion {...go} />
      <Recent place={place} {...go} />
    </Dialog>
  );
}
