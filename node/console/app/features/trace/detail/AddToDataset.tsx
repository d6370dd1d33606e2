// The dialog that copies a span to a dataset: its input, its output as the expected one, and where it came from.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../../api/client";
import { makeDataset, readDatasets, type Dataset } from "../../../api/datasets";
import { problemOf } from "../../../api/errors";
import type { Fields } from "../../../api/narrow";
import { cache } from "../../../api/queries";
import { columns, compared, ident, literal, runQuery, sourceOf } from "../../../api/query";
import { readSpan, type SpanHead, type SpanPlace } from "../../../api/spans";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import style from "./Detail.module.css";

interface AddToDatasetProps {
  readonly place: SpanPlace;
  readonly projectId: string;
  readonly head: SpanHead;
  readonly onClose: () => void;
}

/** Whether a dataset has a row that came from a span. */
async function hasOrigin(place: SpanPlace, dataset: string, id: string): Promise<boolean> {
  const page = await runQuery(place.organization, {
    select: columns("id"),
    from: sourceOf("dataset", dataset),
    filter: [
      compared("eq", ident("origin", "id"), literal(id)),
      compared("eq", ident("origin", "object_id"), literal(place.source.id)),
    ],
    limit: 1,
  });
  return page.rows.length > 0;
}

/** A span as a row of a dataset: what was answered is what is expected, unless somebody said what is. */
function eventOf(place: SpanPlace, row: Fields): Fields {
  const { id, _xact_id, input, output, expected, metadata, tags } = row;
  const origin = { object_type: place.source.kind, object_id: place.source.id, id, _xact_id };
  return { input, expected: expected ?? output, metadata, tags, origin };
}

async function copySpan(place: SpanPlace, dataset: string, head: SpanHead): Promise<void> {
  const row = await readSpan(place, head.id);
  if (row === null) throw new Error("The span is gone, so that it cannot be copied.");
  const body = { events: [eventOf(place, row)] };
  await call("POST", `/v1/dataset/${dataset}/insert`, { organization: place.organization, body, isExact: true });
}

/** What the dialog has chosen, and what happens when it is sent. */
function useAdding({ place, projectId, head, onClose }: AddToDatasetProps, known: readonly Dataset[]) {
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const [warned, setWarned] = useState("");
  const [isBusy, setBusy] = useState(false);
  const add = async (): Promise<void> => {
    if (chosen === "" && name.trim() === "") throw new Error("Choose a dataset, or name a new one.");
    const dataset =
      known.find((one) => one.id === chosen) ?? (await makeDataset(place.organization, projectId, { name: name.trim() }));
    if (warned !== dataset.id && (await hasOrigin(place, dataset.id, head.id))) {
      setWarned(dataset.id);
      setChosen(dataset.id);
      setFault(`${dataset.name} has a row from this span already. Add again to have it twice.`);
      return;
    }
    await copySpan(place, dataset.id, head);
    void cache.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith("dataset") });
    toast(`Added to ${dataset.name}`);
    onClose();
  };
  const run = (): void => {
    setBusy(true);
    setFault(null);
    add()
      .catch((error: unknown) => setFault(problemOf(error, Date.now()).text))
      .finally(() => setBusy(false));
  };
  return { chosen, setChosen, name, setName, fault, isAgain: warned !== "" && warned === chosen, isBusy, run };
}

export function AddToDataset(props: AddToDatasetProps) {
  const { place, projectId, onClose } = props;
  const datasets = useQuery({
    queryKey: ["datasets-of", place.organization, projectId],
    queryFn: ({ signal }) => readDatasets(place.organization, projectId, signal),
  });
  const known = datasets.data ?? [];
  const adding = useAdding(props, known);
  return (
    <Dialog title="Add the span to a dataset" onClose={onClose}>
      <form
        className={style["editor"]}
        onSubmit={(event) => {
          event.preventDefault();
          adding.run();
        }}
      >
        <p className={style["none"]}>The dataset gets its input, its expected output or else its output, metadata and tags.</p>
        <label className={style["compare"]}>
          Dataset
          <select value={adding.chosen} onChange={(event) => adding.setChosen(event.currentTarget.value)}>
            <option value="">A new dataset</option>
            {known.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
        {adding.chosen === "" && (
          <Field label="Name of the new dataset" value={adding.name} onInput={(event) => adding.setName(event.currentTarget.value)} />
        )}
        <p className={style["bad"]} role="alert">
          {adding.fault ?? (datasets.isError ? `Datasets cannot be read: ${problemOf(datasets.error, Date.now()).text}` : "")}
        </p>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={adding.isBusy}>
            {adding.isAgain ? "Add again" : "Add"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
