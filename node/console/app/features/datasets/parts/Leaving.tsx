// The dialog that asks before unsaved edits are left behind.
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { editWords } from "../useSaving";
import type { Desk } from "../useDesk";
import { useLeaving } from "../useLeaving";

export function Leaving({ desk }: { readonly desk: Desk }) {
  const { store, dataset } = desk;
  const { asked, stay } = useLeaving(store);
  if (asked === null) return null;
  return (
    <Dialog title="Leave with unsaved edits?" onClose={stay}>
      <p>
        {dataset.name} has {editWords(store.history.value.present)} that are not saved. They stay until you close this tab,
        and nobody else sees them.
      </p>
      <DialogActions>
        <Button
          onClick={() => {
            store.dispatch({ kind: "clear" });
            asked();
          }}
        >
          Discard and leave
        </Button>
        <Button onClick={asked}>Leave and keep them</Button>
        <Button look="primary" onClick={stay}>
          Stay
        </Button>
      </DialogActions>
    </Dialog>
  );
}
