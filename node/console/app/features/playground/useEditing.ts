// The playground as it is edited: every change can be taken back, and is saved by itself after a moment.
import { useEffect, useMemo, useRef, useState } from "react";
import { problemOf } from "../../lib/errors";
import { savePlayground, type Playground, type PlaygroundRecord } from "../../api/playground";
import { useLatest } from "../../lib/commands";
import { forgetPlaygrounds, type Place } from "./queries";

/** How long a change waits before it is saved, in milliseconds. */
const SAVED_MS = 600;

/** Changes within this time are one step of the history, as letters that are typed are. */
const STEP_MS = 1000;

const STEPS_MAX = 100;

export interface Editing {
  readonly playground: Playground;
  /** Why the last save failed; null if it did not. */
  readonly fault: string | null;
  readonly isSaved: boolean;
  readonly edit: (change: (before: Playground) => Playground) => void;
  readonly undo: () => void;
  readonly redo: () => void;
  readonly save: () => void;
}

interface History {
  readonly past: readonly Playground[];
  readonly present: Playground;
  readonly future: readonly Playground[];
  /** When the present was made. */
  readonly at: number;
}

function edited(before: History, present: Playground, now: number): History {
  if (present === before.present) return before;
  const isSameStep = before.past.length > 0 && now - before.at < STEP_MS;
  const past = isSameStep ? before.past : [...before.past, before.present].slice(-STEPS_MAX);
  return { past, present, future: [], at: now };
}

/** Goes back, or forward, by one step. */
function stepped({ past, present, future }: History, by: -1 | 1): History | null {
  const to = by < 0 ? past.at(-1) : future[0];
  if (to === undefined) return null;
  return by < 0
    ? { past: past.slice(0, -1), present: to, future: [present, ...future], at: 0 }
    : { past: [...past, present], present: to, future: future.slice(1), at: 0 };
}

/** Saves what was changed, one request at a time, and what is left when the page is left. */
function useSaving(place: Place, record: PlaygroundRecord, present: Playground) {
  const saved = useRef(record.playground);
  const isSending = useRef(false);
  const [fault, setFault] = useState<string | null>(null);
  const [isSaved, setSaved] = useState(true);
  const save = useLatest((): void => {
    if (isSending.current || saved.current === present) return;
    isSending.current = true;
    const sent = present;
    savePlayground(place.organization, record, sent)
      .then(
        () => {
          saved.current = sent;
          setFault(null);
          void forgetPlaygrounds(place);
        },
        (error: unknown) => setFault(problemOf(error, 0).text),
      )
      .finally(() => {
        isSending.current = false;
        setSaved((before) => (saved.current === sent ? true : before));
      });
  });
  useEffect(() => {
    if (saved.current === present) return setSaved(true);
    setSaved(false);
    const timer = window.setTimeout(save, SAVED_MS);
    return () => window.clearTimeout(timer);
  }, [present, isSaved]);
  useEffect(() => () => save(), [save]);
  return { fault, isSaved, save };
}

export function useEditing(place: Place, record: PlaygroundRecord): Editing {
  const [history, setHistory] = useState<History>({ past: [], present: record.playground, future: [], at: 0 });
  const saving = useSaving(place, record, history.present);
  const ways = useMemo(() => {
    const step = (by: -1 | 1) => (): void => setHistory((before) => stepped(before, by) ?? before);
    return {
      edit: (change: (before: Playground) => Playground): void =>
        setHistory((before) => edited(before, change(before.present), Date.now())),
      undo: step(-1),
      redo: step(1),
    };
  }, []);
  return { playground: history.present, ...saving, ...ways };
}
