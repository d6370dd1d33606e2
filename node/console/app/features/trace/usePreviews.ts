// Beginnings of the contents of the spans in view, read in batches when the view has come to rest.
import { useEffect, useRef, useState } from "react";
import { readPreviews, type SpanPlace } from "../../api/spans";

const REST_MS = 80;
/** How many are read at once, and how many are kept. */
const BATCH = 100;
const KEPT = 4000;

const NOTHING: ReadonlyMap<string, string> = new Map();

/** Returns what is known of spans by their row's id. What fails is asked for again when the view moves. */
export function usePreviews(place: SpanPlace, ids: readonly string[]): ReadonlyMap<string, string> {
  const [known, setKnown] = useState(NOTHING);
  const latest = useRef(known);
  latest.current = known;
  useEffect(() => setKnown(NOTHING), [place]);
  const wanted = ids.join("\n");
  useEffect(() => {
    const abort = new AbortController();
    const read = async (): Promise<void> => {
      const missing = ids.filter((id) => id !== "" && !latest.current.has(id)).slice(0, BATCH);
      if (missing.length === 0) return;
      const found = await readPreviews(place, missing, { signal: abort.signal });
      if (abort.signal.aborted) return;
      const older = latest.current.size > KEPT ? NOTHING : latest.current;
      setKnown(new Map([...older, ...missing.map((id) => [id, found.get(id) ?? ""] as const)]));
    };
    const timer = window.setTimeout(() => void read().catch(() => undefined), REST_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [place, wanted]);
  return known;
}
