// The remarks on the text of the shown tab: from the parser while it is typed, from the server once it was run.
import { useEffect, useMemo, useState } from "react";
import { remarkOfFault, remarksOf, type Remark } from "./fixes";
import { parse, type Fault } from "./queries";
import type { Run } from "./runner";
import type { Owner } from "./saved";
import { knownFields } from "./useKnown";

const REST_MS = 500;

interface Parsed {
  readonly text: string;
  readonly fault: Fault | null;
}

/** What the parser says of a text after nobody has typed for a moment; null until then. */
function useParsed(owner: Owner, text: string): Parsed | null {
  const [parsed, setParsed] = useState<Parsed | null>(null);
  useEffect(() => {
    if (text.trim() === "") return undefined;
    const reading = new AbortController();
    const timer = window.setTimeout(() => {
      void parse(owner.name, text, reading.signal).then((fault) => {
        if (!reading.signal.aborted) setParsed({ text, fault });
      });
    }, REST_MS);
    return () => {
      window.clearTimeout(timer);
      reading.abort();
    };
  }, [owner.name, text]);
  return parsed?.text === text ? parsed : null;
}

export function useRemarks(owner: Owner, text: string, run: Run): readonly Remark[] {
  const parsed = useParsed(owner, text);
  return useMemo(() => {
    if (run.request?.query === text) {
      if (run.fault !== null) return [remarkOfFault(text, run.fault)];
      if (run.status === "done" && run.ran !== null) {
        const columns = knownFields(owner, text).flatMap(({ path }) => (path.length === 1 ? path : []));
        return remarksOf(text, run.ran.result.warnings, columns);
      }
    }
    return parsed === null || parsed.fault === null ? [] : [remarkOfFault(text, parsed.fault)];
  }, [owner, text, run, parsed]);
}
