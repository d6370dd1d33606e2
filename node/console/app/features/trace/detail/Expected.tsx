// The expected output of a span as a text that can be changed: JSON where it is JSON, else words.
import { useId, useState } from "react";
import { Button } from "../../../design/Button";
import { asText, parseJson } from "../../../lib/json";
import style from "./Detail.module.css";

interface Read {
  readonly value: unknown;
  readonly fault: string | null;
}

/** What a text stands for: nothing, JSON if it begins like it, else itself. */
export function readExpected(text: string): Read {
  const trimmed = text.trim();
  if (trimmed === "") return { value: null, fault: null };
  if (!/^(?:[[{"]|-?\d+(?:\.\d+)?$|true$|false$|null$)/.test(trimmed)) return { value: text, fault: null };
  try {
    return { value: parseJson(trimmed), fault: null };
  } catch {
    return { value: null, fault: "This begins like JSON but is none. Correct it, or put quotes around a text." };
  }
}

/** The text of a value, so that reading it gives the value again. */
export function editedText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return asText(value);
  const read = readExpected(value);
  return read.fault === null && read.value === value ? value : JSON.stringify(value);
}

interface ExpectedProps {
  readonly value: unknown;
  readonly onSave: (value: unknown) => void;
  readonly onClose: () => void;
}

export function ExpectedEditor({ value, onSave, onClose }: ExpectedProps) {
  const [text, setText] = useState(() => editedText(value));
  const [fault, setFault] = useState<string | null>(null);
  const id = useId();
  const save = (): void => {
    const read = readExpected(text);
    setFault(read.fault);
    if (read.fault !== null) return;
    if (asText(read.value) !== asText(value ?? null)) onSave(read.value);
    onClose();
  };
  return (
    <form
      className={style["editor"]}
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
      onKeyDown={(event) => {
        const isSaved = event.key === "Enter" && (event.ctrlKey || event.metaKey);
        if (!isSaved && event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        if (isSaved) save();
        else onClose();
      }}
    >
      <textarea
        autoFocus
        aria-label="Expected output, as text or JSON"
        aria-invalid={fault !== null}
        aria-describedby={id}
        rows={Math.min(Math.max(text.split("\n").length, 3), 20)}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p id={id} role="alert" className={style["bad"]}>
        {fault}
      </p>
      <div className={style["line"]}>
        <Button type="submit" look="primary">
          Save
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </form>
  );
}
