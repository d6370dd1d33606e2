// A conversation as people read it: who said what, which tools were called, and what they returned.
import { useMemo, useState } from "react";
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Json } from "../../../design/Json";
import type { Message, Part, ResultPart } from "../messages/forms";
import { withResults } from "../messages/messages";
import style from "./Conversation.module.css";
import { Long, Prose } from "./Long";
import { Medium } from "./Medium";

/** Letters of a system prompt and of results, and of other texts, from which they are folded. */
const FOLD_SYSTEM = 600;
const FOLD_TEXT = 4000;

const ROWS = 8;

function Result({ part: { output, isError } }: { readonly part: ResultPart }) {
  return (
    <>
      <span className={classes(style["callName"], isError && style["bad"])}>{isError ? "Failed" : "Returned"}</span>
      {typeof output === "string" ? (
        <Long text={output} limit={FOLD_SYSTEM} />
      ) : (
        <Json value={output} label="What the tool returned" rows={ROWS} />
      )}
    </>
  );
}

function Call({ part, result }: { readonly part: Extract<Part, { kind: "call" }>; readonly result: ResultPart | undefined }) {
  const name = part.name || "a tool";
  const isEmpty = typeof part.input === "object" && part.input !== null && Object.keys(part.input).length === 0;
  return (
    <div className={style["call"]} role="group" aria-label={`Call of ${name}`}>
      <span className={style["callName"]}>
        {name}
        {isEmpty && "()"}
      </span>
      {typeof part.input === "string" ? (
        <Long text={part.input} limit={FOLD_SYSTEM} />
      ) : (
        !isEmpty && part.input !== undefined && <Json value={part.input} label={`Arguments of ${name}`} rows={ROWS} />
      )}
      {result !== undefined && <Result part={result} />}
    </div>
  );
}

interface ShownProps {
  readonly organization: string;
  readonly part: Part;
  readonly role: string;
  readonly result: ResultPart | undefined;
}

function Shown({ organization, part, role, result }: ShownProps) {
  switch (part.kind) {
    case "text":
      return <Prose text={part.text} limit={role === "system" ? FOLD_SYSTEM : FOLD_TEXT} isRead={role === "assistant"} />;
    case "reasoning":
      return (
        <details className={style["reasoning"]}>
          <summary>Reasoning, {part.text.length.toLocaleString("en-US")} characters</summary>
          <Long text={part.text} limit={FOLD_TEXT} />
        </details>
      );
    case "refusal":
      return <p className={classes(style["text"], style["bad"])}>Refused: {part.text}</p>;
    case "image":
    case "audio":
    case "video":
    case "file":
      return <Medium organization={organization} kind={part.kind} media={part.media} />;
    case "call":
      return <Call part={part} result={result} />;
    case "result":
      return (
        <div className={style["call"]}>
          <Result part={part} />
        </div>
      );
    case "other":
      return <Json value={part.value} label="Part of the message" rows={ROWS} />;
  }
}

interface ConversationProps {
  /** The organization whose attachments are shown. */
  readonly organization?: string;
  readonly messages: readonly Message[];
  /** How many messages at the beginning are those of the call before. */
  readonly shared?: number;
}

export function Conversation({ organization = "", messages: all, shared = 0 }: ConversationProps) {
  const [isAll, setAll] = useState(false);
  const folded = shared < 2 || isAll ? 0 : shared;
  const { messages, resultOf } = useMemo(() => withResults(all.slice(folded)), [all, folded]);
  return (
    <ol className={style["conversation"]}>
      {folded > 0 && (
        <li>
          <Button look="quiet" icon="right" onClick={() => setAll(true)}>
            Same {folded} messages as the call before
          </Button>
        </li>
      )}
      {messages.map((message, index) => (
        <li key={folded + index} className={classes(style["message"], style[message.role])}>
          <span className={style["role"]}>
            {message.role}
            {message.name === "" ? "" : ` ${message.name}`}
          </span>
          {message.parts.length === 0 && <p className={style["none"]}>Nothing</p>}
          {message.parts.map((part, place) => (
            <Shown key={place} organization={organization} part={part} role={message.role} result={resultOf.get(part)} />
          ))}
        </li>
      ))}
    </ol>
  );
}
