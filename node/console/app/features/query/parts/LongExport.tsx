// The dialog that runs a long query on the server and saves its rows when they are there.
import { useEffect, useState } from "react";
import { isAbort, problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { toast } from "../../../design/Toast";
import { exactCount } from "../../../lib/numbers";
import { fileName, runLong, saveBlob } from "../exports";
import type { RunRequest } from "../queries";

interface LongExportProps {
  readonly organization: string;
  readonly request: RunRequest;
  readonly title: string;
  readonly onClose: () => void;
}

export function LongExport({ organization, request, title, onClose }: LongExportProps) {
  const [rows, setRows] = useState(0);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    const reading = new AbortController();
    runLong(organization, request, setRows, reading.signal).then(
      (blob) => {
        const name = `${fileName(title, new Date())}.jsonl`;
        saveBlob(blob, name);
        toast(`The file ${name} is saved.`);
        onClose();
      },
      (error: unknown) => {
        if (!isAbort(error)) setFault(problemOf(error, 0).text);
      },
    );
    return () => reading.abort();
  }, []);
  return (
    <Dialog title="Long export" onClose={onClose}>
      <p role={fault === null ? "status" : "alert"}>
        {fault !== null
          ? `The export failed. ${fault}`
          : rows === 0
            ? "The server runs the query. It may take minutes."
            : `${exactCount(rows)} rows are here.`}
      </p>
      <DialogActions>
        <Button onClick={onClose}>{fault === null ? "Stop" : "Close"}</Button>
      </DialogActions>
    </Dialog>
  );
}
