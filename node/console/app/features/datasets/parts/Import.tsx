// The dialog that imports a file or pasted text, in three steps: choose, map, run.
import { useEffect, useRef, useState, type DragEvent } from "react";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import type { Desk } from "../useDesk";
import { useImport, type Import as ImportState } from "../useImport";
import { Area } from "./Area";
import style from "./Import.module.css";
import { ImportMapping } from "./ImportMapping";
import { ImportProgress } from "./ImportProgress";

function Choose({ state, onClose }: { readonly state: ImportState; readonly onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isOver, setOver] = useState(false);
  const take = (file: File | null | undefined): void => {
    if (file !== null && file !== undefined) void state.choose(file, file.name);
  };
  const onDrop = (event: DragEvent<HTMLElement>): void => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer?.files[0]);
  };
  return (
    <>
      <div
        className={classes(style["drop"], isOver && style["over"])}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={onDrop}
      >
        <Icon name="upload" />
        <p>Drop a file here: CSV, TSV, JSON lines or JSON.</p>
        <Button onClick={() => input.current?.click()}>Choose a file</Button>
        <input
          ref={input}
          type="file"
          className="only-spoken"
          tabIndex={-1}
          aria-label="File to import"
          accept=".csv,.tsv,.tab,.txt,.json,.jsonl,.ndjson"
          onChange={(event) => take(event.currentTarget.files?.[0])}
        />
      </div>
      <Area label="Or paste the rows" rows={6} isCode value={text} onText={setText} hint="CSV or TSV with the names of the columns in its first line, or JSON." />
      {state.fault !== null && (
        <p className={style["fault"]} role="alert">
          {state.fault}
        </p>
      )}
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="primary"
          disabled={text.trim() === ""}
          onClick={() => void state.choose(new Blob([text]), "pasted text")}
        >
          Read the text
        </Button>
      </DialogActions>
    </>
  );
}

interface ImportProps {
  readonly desk: Desk;
  readonly onClose: () => void;
}

export function Import({ desk, onClose }: ImportProps) {
  const state = useImport(desk.place, desk.rows.ask);
  const { phase, chosen } = state;
  const isRunning = phase === "run";
  useEffect(() => {
    if (!isRunning) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [isRunning]);
  return (
    <Dialog
      title={`Import rows into ${desk.dataset.name}`}
      form="wide"
      onClose={() => {
        if (!isRunning) onClose();
      }}
    >
      {phase === "choose" && <Choose state={state} onClose={onClose} />}
      {phase === "map" && chosen !== null && <ImportMapping state={state} chosen={chosen} onClose={onClose} />}
      {(phase === "run" || phase === "done") && <ImportProgress state={state} onClose={onClose} />}
    </Dialog>
  );
}
