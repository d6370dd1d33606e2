// What stands in the place of a facet whose counts could not be read.
import { isAbort, problemOf } from "../../../lib/errors";
import { FailureLine } from "../../../design/FailureLine";
import { isTooMuch, NEEDS_LESS } from "../faults";

interface FailureProps {
  readonly error: unknown;
  readonly words?: string;
  readonly onRetry: () => void;
}

export function Failure({ error, words = "Could not be read", onRetry }: FailureProps) {
  if (isAbort(error)) return null;
  const said = isTooMuch(error)
    ? { words: "Too much data", hint: NEEDS_LESS }
    : { words };
  return <FailureLine {...said} problem={problemOf(error, Date.now())} onRetry={onRetry} />;
}
