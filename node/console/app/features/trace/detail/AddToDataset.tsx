// The dialog that copies a span to a dataset: its input, its output as the expected one, and where it came from.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { copiedBefore, copyRows } from "../../../api/copying";
import { makeDataset, readDatasets, type Dataset } from "../../../api/datasets";
import { problemOf } from "../../../lib/errors";
import { cache } from "../../../api/queries";
import { readSpan, type SpanHead, type SpanPlace } from "../../../api/spans";
import { Field } from "../../../design/Field";
import { FormDialog } from "../../../design/FormDialog";
import { toast } from "../../../design/Toast";
import style from "./Detail.module.css";

interface AddToDatasetProps {
  readonly place: SpanPlace;
  readonly projectId: string;
  readonly head: SpanHead;
  readonly onClose: () => void;
}

async function copySpan(place: SpanPlace, dataset: string, head: SpanHead): Promise<void> {
  const row = await readSpan(place, head.id);
  if (row === null) throw new Error("The span is gone, so that it cannot be copied.");
  await copyRows(place.organization, place.source, [row], dataset);
}

/** What the dialog has chosen, and what happens when it is sent. */
function useAdding({ place, projectId, head }: AddToDatasetProps, known: readonly Dataset[]) {
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const [warned, setWarned] = useState("");
  const add = async (): Promise<string | null> => {
    if (chosen === "" && name.trim() === "") return "Choose a dataset, or name a new one.";
    const dataset =
      known.find((one) => one.id === chosen) ?? (await makeDataset(place.organization, projectId, { name: name.trim() }));
    const isAgain = warned === dataset.id;
    if (!isAgain && (await copiedBefore(place.organization, place.source, [head.id], dataset.id)).size > 0) {
      setWarned(dataset.id);
      setChosen(dataset.id);
      return `${dataset.name} has a row from this span already. Add again to have it twice.`;
    }
    await copySpan(place, dataset.id, head);
    void cache.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith("dataset") });
    toast(`Added to ${dataset.name}`);
    return null;
  };
  return { chosen, setChosen, name, setName, isAgain: warned !== "" && warned === chosen, add };
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
    <FormDialog title="Add the span to a dataset" action={adding.isAgain ? "Add again" : "Add"} onSubmit={adding.add} onClose={onClose}>
      <p className={style["none"]}>The dataset gets the span’s input, metadata and tags, and its expected output, or else its output.</p>
      <label className={style["choice"]}>
        <span>Dataset</span>
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
      {datasets.isError && (
        <p className={style["bad"]} role="alert">
          Datasets cannot be read: {problemOf(datasets.error, Date.now()).text}
        </p>
      )}
    </FormDialog>
  );
}
