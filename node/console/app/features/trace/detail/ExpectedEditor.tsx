// The expected output of a span as a text that can be changed: JSON where it is JSON, else words.
import { useId, useState } from "react";
import { Button } from "../../../design/Button";
import { asText } from "../../../lib/json";
import style from "./Detail.module.css";
import { editedText, readExpected } from "./expected";

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
