// The dialogs of a page, of which one at most is open.
import { useQuery } from "@tanstack/react-query";
import type { Opened } from "../opened";
import { versionQuery } from "../queries";
import type { Desk } from "../useDesk";
import { NewEnvironment, PinDialog } from "./PinDialog";
import { DeleteDialog, DetailsDialog } from "./RecordDialogs";
import { RestoreDialog, SaveDialog } from "./SaveDialogs";

interface DialogsProps {
  readonly desk: Desk;
  readonly opened: Opened;
  readonly onOpen: (opened: Opened) => void;
  /** Goes to the page of a slug, or to the list for an empty one. */
  readonly leave: (slug: string) => void;
}

function Restore({ desk, version, onClose }: { readonly desk: Desk; readonly version: string; readonly onClose: () => void }) {
  const record = useQuery(versionQuery(desk.place, desk.newest.id, version)).data;
  return record === undefined ? null : <RestoreDialog {...{ desk, record, onClose }} />;
}

export function Dialogs({ desk, opened, onOpen, leave }: DialogsProps) {
  const { place, newest } = desk;
  const onClose = (): void => onOpen({ what: "none" });
  switch (opened.what) {
    case "none":
      return null;
    case "save":
      return <SaveDialog {...{ desk, onClose }} />;
    case "restore":
      return <Restore {...{ desk, onClose }} version={opened.version} />;
    case "pin":
      return <PinDialog key={opened.slug} {...{ desk, onClose }} slug={opened.slug} version={opened.version} />;
    case "environment": {
      const pin = (slug: string): void => queueMicrotask(() => onOpen({ what: "pin", slug, version: opened.version }));
      return <NewEnvironment {...{ desk, onClose }} onMade={pin} />;
    }
    case "details":
      return <DetailsDialog {...{ place, onClose }} record={newest} onDone={(slug) => slug !== newest.slug && leave(slug)} />;
    case "delete": {
      const done = (): void => {
        desk.setEdits(null);
        queueMicrotask(() => leave(""));
      };
      return <DeleteDialog {...{ place, onClose }} record={newest} onDone={done} />;
    }
  }
}
