// The state of an import: the chosen file, how it is read, and how far it is.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { problemOf, isAbort } from "../../lib/errors";
import type { Problem } from "../../lib/problem";
import { newId } from "./ids";
import {
  NO_PROGRESS,
  previewOf,
  runImport,
  startOf,
  type DuplicateMode,
  type DuplicatesBy,
  type Preview,
  type Progress,
} from "./importing";
import { columnsOf, guessed, type Mapping, type Target } from "./mapping";
import type { DatasetPlace } from "./queries";
import { formatOf, type Format } from "./records";
import { readKnown, sendRows } from "./sending";

export const PREVIEWED = 50;

/** A chosen file, and how it is read. */
export interface Chosen {
  readonly file: Blob;
  readonly name: string;
  readonly format: Format;
  readonly preview: Preview;
  readonly columns: readonly string[];
  readonly mapping: Mapping;
}

export interface Settings {
  readonly by: DuplicatesBy;
  readonly mode: DuplicateMode;
  readonly isExact: boolean;
}

export type Phase = "choose" | "map" | "run" | "done";

async function readChosen(file: Blob, name: string, wanted: Format | null): Promise<Chosen> {
  const format = wanted ?? formatOf(name, await startOf(file));
  const preview = await previewOf(file, format, PREVIEWED);
  const columns = columnsOf(preview.records.flatMap((one) => ("fields" in one ? [one.fields] : [])));
  return { file, name, format, preview, columns, mapping: guessed(columns) };
}

/** What holds an import up and lets it go on. */
interface Control {
  readonly abort: AbortController;
  isPaused: boolean;
  wake: () => void;
}

const controlFrom = (): Control => ({ abort: new AbortController(), isPaused: false, wake: () => undefined });

async function mayGoOn(control: Control): Promise<boolean> {
  while (control.isPaused && !control.abort.signal.aborted) {
    await new Promise<void>((resolve) => {
      control.wake = resolve;
    });
  }
  return !control.abort.signal.aborted;
}

/** The run of an import, which can be paused, taken up again and cancelled. */
function useRun(place: DatasetPlace) {
  const [progress, setProgress] = useState<Progress>(NO_PROGRESS);
  const [isPaused, setPaused] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isCancelled, setCancelled] = useState(false);
  const control = useRef(controlFrom());
  useEffect(() => () => control.current.abort.abort(), []);
  const hold = useCallback((isHeld: boolean): void => {
    control.current.isPaused = isHeld;
    setPaused(isHeld);
    if (isHeld) return;
    setProblem(null);
    control.current.wake();
  }, []);
  const cancel = useCallback((): void => {
    control.current.abort.abort();
    control.current.wake();
    setCancelled(true);
  }, []);
  const run = useCallback(
    async (chosen: Chosen, settings: Settings): Promise<void> => {
      const own = controlFrom();
      control.current = own;
      const onFailure = async (error: unknown): Promise<boolean> => {
        if (isAbort(error)) return false;
        setProblem(problemOf(error, Date.now()));
        hold(true);
        return mayGoOn(own);
      };
      const { format, mapping } = chosen;
      const plan = { format, mapping, options: { isExact: settings.isExact }, by: settings.by, mode: settings.mode };
      const { signal } = own.abort;
      const known = await readKnown(place, settings.by, signal);
      await runImport(chosen.file, plan, known, {
        send: (events) => sendRows(place, events, signal),
        newId,
        onProgress: setProgress,
        mayGoOn: () => mayGoOn(own),
        onFailure,
      });
    },
    [place, hold],
  );
  return { progress, isPaused, problem, isCancelled, hold, cancel, run, setProblem };
}

export function useImport(place: DatasetPlace, onWritten: () => Promise<void>) {
  const [phase, setPhase] = useState<Phase>("choose");
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [settings, setSettings] = useState<Settings>({ by: "none", mode: "skip", isExact: false });
  const running = useRun(place);
  const choose = useCallback(async (file: Blob, name: string, format: Format | null = null): Promise<void> => {
    setFault(null);
    try {
      const next = await readChosen(file, name, format);
      const hasRecord = next.preview.records.some((one) => "fields" in one);
      setChosen(next);
      setPhase("map");
      if (!hasRecord) setFault("No row can be read. Look at the faults below, or choose another format.");
      if ([...next.mapping.values()].includes("id")) setSettings((before) => ({ ...before, by: "id" }));
    } catch (error) {
      setFault(`The file could not be read. ${problemOf(error, 0).text}`);
    }
  }, []);
  const target = useCallback((column: string, to: Target): void => {
    setChosen((before) => before && { ...before, mapping: new Map([...before.mapping, [column, to]]) });
  }, []);
  const start = useCallback(async (): Promise<void> => {
    if (chosen === null) return;
    setPhase("run");
    try {
      await running.run(chosen, settings);
    } catch (error) {
      if (!isAbort(error)) running.setProblem(problemOf(error, Date.now()));
    }
    setPhase("done");
    await onWritten().catch(() => undefined);
  }, [chosen, settings, running.run, onWritten]);
  const { progress, isPaused, problem, isCancelled, hold, cancel } = running;
  return useMemo(
    () => ({ phase, setPhase, chosen, choose, target, fault, settings, setSettings, start, progress, isPaused, problem, isCancelled, hold, cancel }),
    [phase, chosen, choose, target, fault, settings, start, progress, isPaused, problem, isCancelled, hold, cancel],
  );
}

export type Import = ReturnType<typeof useImport>;
