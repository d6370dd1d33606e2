// What stands in the place of a facet whose counts could not be read.
import { isAbort, problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import style from "./Facets.module.css";

export function Failure({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  if (isAbort(error)) return null;
  return (
    <div className={style["failure"]} role="alert">
      <p>The counts could not be read. {problemOf(error, Date.now()).text}</p>
      <Button onClick={onRetry}>Try again</Button>
    </div>
  );
}
