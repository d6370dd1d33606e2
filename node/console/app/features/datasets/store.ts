// The unsaved edits of each dataset. They outlive the screen, so that a look elsewhere does not lose them.
import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { edited, NO_HISTORY, type EditAction, type EditedRow, type History } from "./edits";

export interface EditStore {
  readonly history: ReadonlySignal<History>;
  readonly editOf: (id: string) => ReadonlySignal<EditedRow | undefined>;
  readonly dispatch: (action: EditAction) => void;
}

function createStore(): EditStore {
  const history = signal<History>(NO_HISTORY);
  return {
    history,
    editOf: (id) => computed(() => history.value.present.rows.get(id)),
    dispatch: (action) => {
      history.value = edited(history.peek(), action);
    },
  };
}

const stores = new Map<string, EditStore>();

export function editStore(datasetId: string): EditStore {
  const known = stores.get(datasetId);
  if (known !== undefined) return known;
  const made = createStore();
  stores.set(datasetId, made);
  return made;
}
