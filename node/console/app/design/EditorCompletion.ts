// The state of an editor's completion: what was offered, which option is chosen, and when it is over.
import { useRef, useState } from "react";
import { asksForOptions, fitting, staysValid } from "./EditorTyping";
import type { EditorOption, EditorProps } from "./EditorTypes";

interface Offered {
  readonly from: number;
  readonly to: number | null;
  readonly options: readonly EditorOption[];
}

export interface Completion {
  /** The options that fit what is written; empty for no list. */
  readonly options: readonly EditorOption[];
  readonly chosen: number;
  /** The part of the text that an option replaces. */
  readonly from: number;
  readonly to: number | null;
}

export interface CompletionActions {
  /** Asks for options, however little is written. */
  open(text: string, at: number): void;
  /** Follows a change of the text. */
  follow(text: string, at: number): void;
  /** Follows the caret. */
  moved(text: string, at: number): void;
  choose(by: number): void;
  close(): void;
}

const NONE: Completion = { options: [], chosen: 0, from: 0, to: null };

/** Keeps what an editor completes. */
export function useCompletion(complete: () => EditorProps["complete"]): readonly [Completion, CompletionActions] {
  const [shown, setShown] = useState<Completion>(NONE);
  const offered = useRef<Offered | null>(null);
  const reading = useRef<AbortController | null>(null);
  const close = (): void => {
    reading.current?.abort();
    offered.current = null;
    setShown(NONE);
  };
  const show = (found: Offered, text: string, at: number): void => {
    const written = text.slice(found.from, at);
    const options = fitting(found.options, written);
    const isWritten = options.length === 1 && options[0]?.label === written;
    if (options.length === 0 || isWritten) close();
    else setShown({ options, chosen: 0, from: found.from, to: found.to });
  };
  const open = (text: string, at: number): void => {
    reading.current?.abort();
    const one = new AbortController();
    reading.current = one;
    complete()(text, at, one.signal)
      .catch(() => null)
      .then((found) => {
        if (one.signal.aborted) return;
        if (found === null || found.options.length === 0) return close();
        offered.current = { from: found.from, to: found.to ?? null, options: found.options };
        show(offered.current, text, at);
      })
      .catch(() => undefined);
  };
  const isInside = (text: string, at: number): boolean =>
    offered.current !== null && at >= offered.current.from && staysValid(text.slice(offered.current.from, at));
  return [
    shown,
    {
      open,
      close,
      follow: (text, at) => {
        if (offered.current !== null && isInside(text, at)) {
          offered.current = { ...offered.current, to: null };
          show(offered.current, text, at);
        } else if (asksForOptions(text, at)) open(text, at);
        else close();
      },
      moved: (text, at) => {
        if (offered.current !== null && !isInside(text, at)) close();
      },
      choose: (by) =>
        setShown((now) => ({ ...now, chosen: (now.chosen + by + now.options.length) % Math.max(1, now.options.length) })),
    },
  ];
}
