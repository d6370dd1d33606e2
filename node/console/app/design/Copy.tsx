// A button that copies a text and says so.
import { useEffect, useState } from "react";
import { copyText } from "../lib/clipboard";
import { Button, IconButton } from "./Button";

type Outcome = "none" | "copied" | "failed";

const SHOWN_MS = 2000;

interface CopyProps {
  readonly text: string;
  /** What is copied, as in "the request id". */
  readonly what: string;
  /** The words on the button; without them it is an icon. */
  readonly title?: string;
}

export function Copy({ text, what, title }: CopyProps) {
  const [outcome, setOutcome] = useState<Outcome>("none");
  useEffect(() => {
    if (outcome === "none") return undefined;
    const timer = window.setTimeout(() => setOutcome("none"), SHOWN_MS);
    return () => window.clearTimeout(timer);
  }, [outcome]);
  const copy = async (): Promise<void> => setOutcome((await copyText(text)) ? "copied" : "failed");
  const words = { none: title ?? `Copy ${what}`, copied: "Copied", failed: "Copying failed" }[outcome];
  const icon = outcome === "copied" ? "check" : outcome === "failed" ? "warning" : "copy";
  return (
    <>
      {title === undefined ? (
        <IconButton icon={icon} label={`Copy ${what}`} hint={words} onClick={() => void copy()} />
      ) : (
        <Button icon={icon} aria-label={`Copy ${what}`} onClick={() => void copy()}>
          {words}
        </Button>
      )}
      <span className="only-spoken" role="status">
        {outcome === "none" ? "" : words}
      </span>
    </>
  );
}
