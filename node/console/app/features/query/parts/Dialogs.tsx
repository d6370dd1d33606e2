// The dialogs of the query editor.
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { toast } from "../../../design/Toast";
import { remove, rename, savedQuery, saveNew, type Owner, type Saved } from "../saved";
import { EMPTY_PART, tabTitle } from "../tabs";
import type { Bench } from "../useBench";
import { Examples } from "./Examples";
import { LongExport } from "./LongExport";
import { NameDialog } from "./NameDialog";
import { PickDialog } from "./PickDialog";

export type Opened = "none" | "version" | "history" | "saved" | "name" | "examples" | "long";

interface DialogsProps {
  readonly opened: Opened;
  readonly bench: Bench;
  readonly owner: Owner;
  readonly onClose: () => void;
}

interface DeleteProps {
  readonly saved: Saved;
  readonly owner: Owner;
  readonly onDeleted: () => void;
  readonly onClose: () => void;
}

function DeleteDialog({ saved, owner, onDeleted, onClose }: DeleteProps) {
  const [isSending, setSending] = useState(false);
  const act = async (): Promise<void> => {
    if (isSending) return;
    setSending(true);
    try {
      await remove(owner, saved.id);
      onDeleted();
      toast(`The saved query ${saved.part.name} is deleted.`);
    } catch (error) {
      toast(`Deleting failed. ${problemOf(error, 0).text}`, true);
    }
    onClose();
  };
  return (
    <Dialog title={`Delete ${saved.part.name}?`} onClose={onClose}>
      <p>Nobody will find this saved query any more. Open tabs keep its text.</p>
      <DialogActions>
        <Button onClick={onClose}>Keep</Button>
        <Button look="primary" aria-disabled={isSending} onClick={() => void act()}>
          Delete
        </Button>
      </DialogActions>
    </Dialog>
  );
}

type Asked = { readonly what: "rename" | "delete"; readonly saved: Saved } | null;

interface AskedProps extends Omit<DialogsProps, "opened"> {
  readonly asked: NonNullable<Asked>;
  readonly taken: readonly string[];
}

/** What was asked of a saved query: another name, or to delete it. */
function AskedDialog({ asked, taken, bench, owner, onClose }: AskedProps) {
  const { what, saved } = asked;
  const isOpen = (): boolean => bench.tab.peek().saved === saved.id;
  const toName = async (name: string): Promise<void> => {
    await rename(owner, saved.id, name);
    if (isOpen()) bench.change({ name });
  };
  if (what === "rename") {
    return (
      <NameDialog
        title="Rename the saved query"
        action="Rename"
        name={saved.part.name}
        hint="Everybody in the organization sees this name."
        taken={taken}
        onName={toName}
        onClose={onClose}
      />
    );
  }
  const onDeleted = (): void => {
    if (isOpen()) bench.change({ saved: "", name: "" });
  };
  return <DeleteDialog {...{ saved, owner, onDeleted, onClose }} />;
}

function emptyText(query: UseQueryResult<readonly Saved[]>): string {
  if (query.error !== null) return `The saved queries could not be read. ${problemOf(query.error, 0).text}`;
  if (query.data === undefined) return "Reading the saved queries.";
  return "No query is saved yet. Ctrl S in the editor saves one for everybody in the organization.";
}

function SavedDialog({ bench, owner, onClose }: Omit<DialogsProps, "opened">) {
  const query = useQuery(savedQuery(owner));
  const [asked, setAsked] = useState<Asked>(null);
  const list = query.data ?? [];
  if (asked !== null) {
    const taken = list.map(({ part }) => part.name);
    return <AskedDialog {...{ asked, taken, bench, owner }} onClose={() => setAsked(null)} />;
  }
  return (
    <PickDialog
      title="Saved queries"
      empty={emptyText(query)}
      picks={list.map((saved) => ({
        id: saved.id,
        title: saved.part.name,
        note: tabTitle({ ...saved.part, name: "", id: 0 }),
        run: () => {
          bench.open(saved.part);
          bench.run();
          onClose();
        },
        actions: [
          { id: "rename", title: "Rename", run: () => setAsked({ what: "rename", saved }) },
          { id: "delete", title: "Delete", run: () => setAsked({ what: "delete", saved }) },
        ],
      }))}
      onClose={onClose}
    />
  );
}

function SaveDialog({ bench, owner, onClose }: Omit<DialogsProps, "opened">) {
  const { data } = useQuery(savedQuery(owner));
  const save = async (name: string): Promise<void> => {
    const saved = await saveNew(owner, name, bench.tab.peek());
    bench.change({ name, saved });
    toast(`The query is saved as ${name}.`);
  };
  return (
    <NameDialog
      title="Save the query"
      action="Save"
      name=""
      hint="Everybody in the organization can open it."
      taken={(data ?? []).map(({ part }) => part.name)}
      onName={save}
      onClose={onClose}
    />
  );
}

function HistoryDialog({ bench, onClose }: Omit<DialogsProps, "opened">) {
  const history = bench.desk.value.history.toReversed();
  return (
    <PickDialog
      title="History"
      empty="No query was run here yet. This browser remembers the last 200."
      picks={history.map((text, index) => ({
        id: String(index),
        title: text,
        isCode: true,
        run: () => {
          bench.open({ ...EMPTY_PART, text });
          onClose();
        },
      }))}
      onClose={onClose}
    />
  );
}

export function Dialogs({ opened, ...props }: DialogsProps) {
  const { bench, owner, onClose } = props;
  const tab = bench.tab.value;
  switch (opened) {
    case "none":
    case "version":
      return null;
    case "history":
      return <HistoryDialog {...props} />;
    case "saved":
      return <SavedDialog {...props} />;
    case "name":
      return <SaveDialog {...props} />;
    case "examples":
      return (
        <Dialog title="Examples" form="wide" onClose={onClose}>
          <Examples
            organization={owner.name}
            onChoose={(part) => {
              bench.open(part);
              bench.run();
              onClose();
            }}
          />
        </Dialog>
      );
    case "long":
      return <LongExport organization={owner.name} request={bench.request()} title={tabTitle(tab)} onClose={onClose} />;
  }
}
