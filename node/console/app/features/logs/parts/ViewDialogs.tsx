// The dialogs of the menu of views: saves a view under a name, renames it, and deletes it.
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { toast } from "../../../design/Toast";
import { changeView, deleteView, makeView } from "../laterQueries";
import type { LogsState } from "../url";
import { viewedState, type View } from "../views";
import { NameDialog } from "./NameDialog";

export type ViewDialog = "save" | "rename" | "delete";

export interface ViewDialogsProps {
  readonly opened: ViewDialog;
  readonly state: LogsState;
  readonly projectId: string;
  readonly views: readonly View[];
  readonly current: View | undefined;
  readonly change: (changed: Partial<LogsState>) => void;
  readonly onClose: () => void;
}

const isTaken = (views: readonly View[], id: string) => (name: string): string | null =>
  views.some((view) => view.name === name && view.id !== id) ? "A view has this name already." : null;

interface DeleteViewProps {
  readonly view: View;
  readonly onDelete: () => void;
  readonly onClose: () => void;
}

function DeleteView({ view, onDelete, onClose }: DeleteViewProps) {
  return (
    <Dialog title={`Delete the view ${view.name}?`} onClose={onClose}>
      <p>Everybody in the project loses it. The rows that it shows stay.</p>
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" onClick={onDelete}>
          Delete
        </Button>
      </DialogActions>
    </Dialog>
  );
}

export function ViewDialogs({ opened, state, projectId, views, current, change, onClose }: ViewDialogsProps) {
  const { organization } = state;
  if (opened === "save") {
    return (
      <NameDialog
        title="Save as a new view"
        label="Name"
        hint="The view keeps the filter, range, columns, sort and grouping. Everybody in the project sees it."
        action="Save"
        check={isTaken(views, "")}
        onDone={async (text) => change({ view: await makeView(organization, projectId, text, viewedState(state)) })}
        onClose={onClose}
      />
    );
  }
  if (current === undefined) return null;
  if (opened === "rename") {
    return (
      <NameDialog
        title={`Rename ${current.name}`}
        label="Name"
        start={current.name}
        action="Rename"
        check={isTaken(views, current.id)}
        onDone={(text) => changeView(organization, projectId, current.id, { name: text })}
        onClose={onClose}
      />
    );
  }
  const remove = async (): Promise<void> => {
    onClose();
    try {
      await deleteView(organization, projectId, current.id);
      change({ view: "" });
      toast(`The view ${current.name} is deleted.`);
    } catch (error) {
      toast(`The view was not deleted. ${problemOf(error, 0).text}`, true);
    }
  };
  return <DeleteView view={current} onDelete={() => void remove()} onClose={onClose} />;
}
