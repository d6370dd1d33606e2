// The dialogs that make, change and delete a saved queue.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useState, type ComponentType } from "react";
import { deleteQueue, saveQueue, type QueueWhat } from "../../../api/reviewQueues";
import { cache } from "../../../api/queries";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import type { FilterProps } from "../parts";
import { queuesQuery, sourceQuery, type Place } from "../queries";
import type { Queue } from "../queues";
import style from "./Dialogs.module.css";
import { Check } from "./Check";

const NEW: QueueWhat = { name: "", kind: "project_logs", filter: "", isRootOnly: true };
const KINDS = [
  ["project_logs", "Logs"],
  ["experiment", "Experiments"],
] as const;

const refresh = (place: Place): Promise<void> => cache.invalidateQueries({ queryKey: queuesQuery(place).queryKey });

interface DialogProps {
  readonly place: Place;
  readonly onClose: () => void;
}

interface EditProps extends DialogProps {
  /** The queue that is changed; null for a new one. */
  readonly queue: Queue | null;
  readonly FilterBar: ComponentType<FilterProps>;
}

export function QueueDialog({ place, queue, FilterBar, onClose }: EditProps) {
  const [what, setWhat] = useState<QueueWhat>(queue ?? NEW);
  const [fault, setFault] = useState<string | null>(null);
  const change = (part: Partial<QueueWhat>): void => setWhat((before) => ({ ...before, ...part }));
  const source = useQuery(sourceQuery(place, what)).data;
  const first = source?.kind === what.kind ? source.ids[0] : undefined;
  const name = what.name.trim();
  return (
    <FormDialog
      title={queue === null ? "New queue" : `Queue ${queue.name}`}
      action={queue === null ? "Create" : "Save"}
      form="wide"
      onClose={onClose}
      onSubmit={async () => {
        setFault(name === "" ? "Enter a name first." : null);
        if (name === "") return "The queue has no name.";
        await saveQueue(place.organization, place.projectId, queue?.id ?? null, { ...what, name });
        await refresh(place);
        toast(`The queue ${name} is saved.`);
        return null;
      }}
    >
      <Field label="Name" autoComplete="off" value={what.name} fault={fault} onChange={(event) => change({ name: event.currentTarget.value })} />
      <fieldset className={style["line"]}>
        <legend>Rows of</legend>
        {KINDS.map(([kind, title]) => (
          <label key={kind} className={style["check"]}>
            <input type="radio" name="kind" checked={what.kind === kind} onChange={() => change({ kind })} />
            {title}
          </label>
        ))}
      </fieldset>
      {first === undefined ? (
        <Field label="Filter" hint="An expression; empty for all rows." value={what.filter} onChange={(event) => change({ filter: event.currentTarget.value })} />
      ) : (
        <FilterBar
          scope={{
            organization: place.organization,
            source: { kind: what.kind, id: first },
            shape: "spans",
            bounds: { from: null, to: null },
            filter: what.filter,
          }}
          onChange={(filter) => change({ filter })}
        />
      )}
      <Check label="Only the root span of each trace" isOn={what.isRootOnly} onChange={(isRootOnly) => change({ isRootOnly })} />
    </FormDialog>
  );
}

export function DeleteQueue({ place, queue, onClose }: DialogProps & { readonly queue: Queue }) {
  return (
    <FormDialog
      title={`Delete the queue ${queue.name}?`}
      action="Delete"
      onClose={onClose}
      onSubmit={async () => {
        await deleteQueue(place.organization, place.projectId, queue.id);
        await refresh(place);
        toast(`The queue ${queue.name} is deleted.`);
        return null;
      }}
    >
      <p>Its rows and their reviews stay.</p>
    </FormDialog>
  );
}
