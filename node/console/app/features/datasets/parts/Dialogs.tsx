// The dialogs of an open dataset.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { Snapshot } from "../../../api/snapshots";
import { Code } from "../../../design/Code";
import { Dialog } from "../../../design/Dialog";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { useLinks } from "../../../lib/links";
import { navigate } from "../../../lib/router";
import { momentOf, readVersion, sentVersion } from "../../../lib/version";
import { datasetsQuery, usesQuery } from "../queries";
import { environmentCode, hasSnippet, pythonCode, typescriptCode, type SnippetSource } from "../snippets";
import { datasetUrl } from "../url";
import type { Desk } from "../useDesk";
import { Import } from "./Import";
import { When } from "./listColumns";
import { DeleteDataset, DetailsDialog } from "./RecordDialogs";
import { DeleteRows } from "./SelectionBar";
import { RestoreDialog, SnapshotDialog } from "./VersionDialogs";
import { Versions } from "./Versions";
import style from "./Versions.module.css";

interface DialogProps {
  readonly desk: Desk;
  readonly onClose: () => void;
}

const LANGUAGES = ["python", "typescript", "shell"] as const;

type Language = (typeof LANGUAGES)[number];

function ReadInCode({ desk, onClose }: DialogProps) {
  const { place, state } = desk;
  const [language, setLanguage] = useState<Language>("python");
  const version = sentVersion(readVersion(state.version));
  const source: SnippetSource = { origin: window.location.origin, project: place.project, name: place.name, version };
  const before = version === "" ? "Reads the dataset as it is when the code runs." : "Reads the dataset at the version that is shown.";
  return (
    <Dialog title="Read it in code" form="wide" onClose={onClose}>
      {hasSnippet(source) ? (
        <Code
          label="Code that reads the dataset"
          chosen={language}
          onChoose={setLanguage}
          snippets={[
            { id: "python", title: "Python", before, code: pythonCode(source) },
            { id: "typescript", title: "TypeScript", before, code: typescriptCode(source) },
            { id: "shell", title: "Environment", before: "What both need to know.", code: environmentCode(source) },
          ]}
        />
      ) : (
        <p>The name of the project or of the dataset has characters that cannot stand in code. Rename it first.</p>
      )}
    </Dialog>
  );
}

function Uses({ desk, onClose }: DialogProps) {
  const { place, change } = desk;
  const query = useQuery(usesQuery(place.organization, place.projectId));
  const uses = (query.data ?? []).filter(({ datasetId }) => datasetId === place.id);
  const show = (version: string): void => {
    onClose();
    change({ version, compare: "" });
  };
  return (
    <Dialog title={`Experiments that used ${place.name}`} form="wide" onClose={onClose}>
      <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={[[24, 10], [24, 10]]} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {() => (
          <>
            {uses.length === 0 && <p>No experiment of this project has used the dataset yet.</p>}
            <ul className={style["list"]}>
              {uses.map(({ id, name, version, created }) => (
                <li key={id} className={style["item"]}>
                  <div className={style["words"]}>
                    <ExperimentName desk={desk} name={name} />
                    <span className={style["faint"]}>
                      <When at={new Date(created)} />
                    </span>
                  </div>
                  {version !== null && momentOf(version) !== null && (
                    <button type="button" className={style["open"]} onClick={() => show(version)}>
                      Show its version
                    </button>
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}

function ExperimentName({ desk, name }: { readonly desk: Desk; readonly name: string }) {
  const links = useLinks();
  return <a href={links.experiment(desk.place.organization, desk.place.project, name)}>{name}</a>;
}

function Records({ desk, onClose }: DialogProps) {
  const { place, dataset, state, rows } = desk;
  const links = useLinks();
  const taken = useQuery(datasetsQuery(place.organization, place.projectId)).data ?? [];
  if (desk.opened === "delete") {
    return (
      <DeleteDataset
        place={place}
        dataset={dataset}
        rows={rows.total ?? null}
        onDeleted={() => navigate(links.datasets(place.organization, place.project), "replace")}
        onClose={onClose}
      />
    );
  }
  return (
    <DetailsDialog
      place={place}
      dataset={dataset}
      taken={taken.map(({ name }) => name)}
      onChanged={({ name }) => {
        if (name !== dataset.name) navigate(datasetUrl.write({ ...state, name }), "replace");
      }}
      onClose={onClose}
    />
  );
}

export function Dialogs({ desk }: { readonly desk: Desk }) {
  const { opened, setOpened, sheet, removeRows } = desk;
  const [snapshot, setSnapshot] = useState<Snapshot | null>(null);
  const onClose = (): void => setOpened("none");
  switch (opened) {
    case "none":
      return null;
    case "delete-rows":
      return <DeleteRows count={sheet.selection.ids.peek().size} onDelete={removeRows} onClose={onClose} />;
    case "import":
      return <Import desk={desk} onClose={onClose} />;
    case "details":
    case "delete":
      return <Records desk={desk} onClose={onClose} />;
    case "code":
      return <ReadInCode desk={desk} onClose={onClose} />;
    case "uses":
      return <Uses desk={desk} onClose={onClose} />;
    case "restore":
      return <RestoreDialog desk={desk} onClose={onClose} />;
    case "snapshot":
      return <SnapshotDialog desk={desk} snapshot={snapshot} onClose={() => setOpened("versions")} />;
    case "versions":
      return (
        <Versions
          desk={desk}
          onEdit={(one) => {
            setSnapshot(one);
            setOpened("snapshot");
          }}
          onClose={onClose}
        />
      );
  }
}
