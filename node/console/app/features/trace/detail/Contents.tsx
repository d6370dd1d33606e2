// The contents of a span in the form of the chosen tab: rendered for reading, or as JSON, YAML, Markdown or text.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Fields } from "../../../api/narrow";
import type { SpanHead, SpanPlace } from "../../../api/spans";
import { Button } from "../../../design/Button";
import { Json } from "../../../design/Json";
import { Markdown } from "../../../design/Markdown";
import { Marked } from "../../../design/Marked";
import { asText } from "../../../lib/json";
import { printYaml } from "../../../lib/yaml";
import { messagesOf, sharedStart } from "../messages/messages";
import { mediaIn } from "../messages/media";
import type { Message } from "../messages/forms";
import { spanQuery } from "../queries";
import { Conversation } from "./Conversation";
import style from "./Detail.module.css";
import { readError } from "./errors";
import { ExpectedEditor } from "./ExpectedEditor";
import type { FilterBy } from "./filter";
import { Long, Prose } from "./Long";
import { Medium } from "./Medium";
import { Section } from "./Section";
import type { Writing } from "./useWriting";

export type Form = "rendered" | "json" | "yaml" | "markdown" | "text";

export const titleOf = (name: string): string => (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll("_", " ");

export const isThere = (value: unknown): boolean => value !== null && value !== undefined;

/** Letters of a text that is shown at once. */
const LETTERS_MAX = 200_000;
const FOLD_TEXT = 6000;

/** A value as Markdown: texts as they are, messages below their roles, and anything else as code. */
function markdownOf(value: unknown): string {
  if (typeof value === "string") return value;
  const messages = messagesOf(value);
  if (messages === null) return `\`\`\`json\n${asText(value)}\n\`\`\``;
  const textsOf = ({ parts }: Message): readonly string[] => parts.flatMap((part) => ("text" in part ? [part.text] : []));
  return messages.map((message) => [`**${message.role}**`, ...textsOf(message)].join("\n\n")).join("\n\n---\n\n");
}

/** A text in letters of one width. A very long one is shown in part until somebody asks for all of it. */
function Plain({ text, label }: { readonly text: string; readonly label: string }) {
  const [isAll, setAll] = useState(false);
  const isCut = !isAll && text.length > LETTERS_MAX;
  return (
    <>
      <pre className={style["pre"]} tabIndex={0} role="region" aria-label={label}>
        <Marked text={isCut ? text.slice(0, LETTERS_MAX) : text} />
      </pre>
      {isCut && <Button onClick={() => setAll(true)}>Show all {text.length.toLocaleString("en-US")} characters</Button>}
    </>
  );
}

interface ValueProps {
  readonly place: SpanPlace;
  readonly name: string;
  readonly value: unknown;
  readonly form: Form;
  /** The messages of the call before, which are folded where they are repeated. */
  readonly before?: readonly Message[];
  readonly onFilter?: FilterBy | undefined;
}

function Rendered({ place, name, value, before = [], onFilter }: ValueProps) {
  const messages = useMemo(() => messagesOf(value), [value]);
  const shared = useMemo(() => (messages === null ? 0 : sharedStart(before, messages)), [messages, before]);
  if (messages !== null) return <Conversation organization={place.organization} messages={messages} shared={shared} />;
  if (typeof value === "string" && /^data:image\//.test(value)) {
    return <Medium organization={place.organization} kind="image" media={mediaIn(value)} />;
  }
  if (typeof value === "string") return <Prose text={value} limit={FOLD_TEXT} isRead={name === "output"} />;
  return <Json value={value} label={titleOf(name)} onFilter={filterBelow(name, onFilter)} />;
}

/** A filter whose paths begin with the name of a field. */
export const filterBelow = (name: string, onFilter: FilterBy | undefined): FilterBy | undefined =>
  onFilter === undefined ? undefined : (steps, value, isExcluded) => onFilter([name, ...steps], value, isExcluded);

export function Value(props: ValueProps) {
  const { name, value, form, onFilter } = props;
  switch (form) {
    case "rendered":
      return <Rendered {...props} />;
    case "json":
      return <Json value={value} label={titleOf(name)} onFilter={filterBelow(name, onFilter)} />;
    case "yaml":
      return <Plain text={printYaml(value)} label={`YAML of ${name}`} />;
    case "markdown":
      return <Markdown text={markdownOf(value)} />;
    case "text":
      return <Plain text={asText(value)} label={`Text of ${name}`} />;
  }
}

function lineCount(text: string): string {
  const lines = text.split("\n").length;
  return `${lines} line${lines === 1 ? "" : "s"}`;
}

function Failure({ error }: { readonly error: unknown }) {
  const { message, stack } = readError(error);
  return (
    <>
      <div className={style["error"]}>
        <Long text={message} limit={FOLD_TEXT} />
      </div>
      {stack !== "" && (
        <details>
          <summary>Stack, {lineCount(stack)}</summary>
          <Plain text={stack} label="Stack of the error" />
        </details>
      )}
    </>
  );
}

/** The messages of the call before: what it was given, and what it answered. */
function useBefore(place: SpanPlace, previous: SpanHead | null): readonly Message[] {
  const { data, isPlaceholderData } = useQuery(spanQuery(place, previous?.id ?? ""));
  return useMemo(() => {
    if (previous === null || isPlaceholderData || data === null || data === undefined) return [];
    return [...(messagesOf(data["input"]) ?? []), ...(messagesOf(data["output"]) ?? [])];
  }, [previous, isPlaceholderData, data]);
}

interface ContentsProps {
  readonly place: SpanPlace;
  readonly row: Fields;
  readonly form: Form;
  readonly previous: SpanHead | null;
  readonly writing: Writing | null;
  readonly onFilter: FilterBy | undefined;
}

function Expected({ row, writing, ...rest }: Omit<ContentsProps, "previous">) {
  const [isEdited, setEdited] = useState(false);
  const value = row["expected"];
  const button = isThere(value) ? "Edit" : "Set";
  if (!isThere(value) && writing === null) return null;
  return (
    <Section
      title="Expected"
      aside={
        writing !== null &&
        !isEdited && (
          <Button look="quiet" aria-label={`${button} the expected output`} onClick={() => setEdited(true)}>
            {button}
          </Button>
        )
      }
    >
      {isEdited && writing !== null ? (
        <ExpectedEditor value={value} onSave={writing.setExpected} onClose={() => setEdited(false)} />
      ) : (
        isThere(value) && <Value {...rest} name="expected" value={value} />
      )}
    </Section>
  );
}

export function Contents({ place, row, form, previous, writing, onFilter }: ContentsProps) {
  const before = useBefore(place, form === "rendered" ? previous : null);
  const shared = { place, form, onFilter };
  const isEmpty = !["input", "output", "error"].some((name) => isThere(row[name]));
  return (
    <>
      {isThere(row["error"]) && (
        <Section title="Error">
          {form === "rendered" ? <Failure error={row["error"]} /> : <Value {...shared} name="error" value={row["error"]} />}
        </Section>
      )}
      {isEmpty && <p className={style["empty"]}>The span has no input, output or error.</p>}
      {isThere(row["input"]) && (
        <Section title="Input">
          <Value {...shared} name="input" value={row["input"]} before={before} />
        </Section>
      )}
      {isThere(row["output"]) && (
        <Section title="Output">
          <Value {...shared} name="output" value={row["output"]} />
        </Section>
      )}
      <Expected {...shared} row={row} writing={form === "rendered" ? writing : null} />
    </>
  );
}
