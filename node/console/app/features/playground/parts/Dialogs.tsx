// The dialogs of an open playground.
import { navigate } from "../../../lib/router";
import type { Desk } from "../useDesk";
import { playgroundDefaults, writePlace } from "../url";
import { AddModels, AddPrompts } from "./AddDialogs";
import { DeletePlayground, RenamePlayground } from "./RecordDialogs";
import { SaveExperiments, SaveVersion } from "./SaveDialogs";
import { RowsDialog, ScorersDialog } from "./SetDialogs";

export function Dialogs({ desk }: { readonly desk: Desk }) {
  const { opened, setOpened } = desk;
  const onClose = (): void => setOpened({ what: "none" });
  switch (opened.what) {
    case "none":
      return null;
    case "prompts":
      return <AddPrompts {...{ desk, onClose }} />;
    case "models":
      return <AddModels {...{ desk, onClose }} prompt={null} />;
    case "modelsOf":
      return <AddModels {...{ desk, onClose }} prompt={opened.prompt} />;
    case "rows":
      return <RowsDialog {...{ desk, onClose }} />;
    case "scorers":
      return <ScorersDialog {...{ desk, onClose }} />;
    case "experiment":
      return <SaveExperiments {...{ desk, onClose }} only={null} />;
    case "experimentOf":
      return <SaveExperiments {...{ desk, onClose }} only={opened.variant} />;
    case "version":
      return <SaveVersion {...{ desk, onClose }} variant={opened.variant} />;
    case "rename":
      return <RenamePlayground place={desk.place} playground={{ id: desk.record.id, name: desk.name }} onRenamed={desk.setName} onClose={onClose} />;
    case "delete": {
      const { organization, project } = desk.place;
      const leave = (): void => navigate(writePlace(playgroundDefaults(organization, project)), "replace");
      return <DeletePlayground place={desk.place} playground={{ id: desk.record.id, name: desk.name }} onDeleted={leave} onClose={onClose} />;
    }
  }
}
