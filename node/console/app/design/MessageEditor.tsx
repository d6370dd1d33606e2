// An editor of a prompt: its messages as blocks, or its one text. It changes what is seen, and keeps all other fields.
//
// Within a block `alt` with an arrow moves the message. Focus stays on what was moved.
import { useState, type KeyboardEvent } from "react";
import { Button, IconButton } from "./Button";
import { Icon } from "./Icon";
import { Menu, type MenuItem } from "./Menu";
import style from "./MessageEditor.module.css";
import { JsonField, TemplateField } from "./MessageEditorFields";
import { useFocusAfter, useKeys } from "./MessageEditorHooks";
import {
  contentOf,
  isCompletion,
  isFields,
  messagesIn,
  moved,
  nextRole,
  partText,
  removed,
  replaced,
  restOf,
  roleOf,
  ROLES,
  withMessageList,
  withPart,
  withPartText,
  withRest,
  withToolCall,
  type PromptFields,
  type TemplateFormat,
} from "./MessageEditorLogic";

export interface MessageEditorProps {
  /** What is edited, for screen readers. */
  readonly label: string;
  /** The `prompt` of a prompt's data: `{type: "chat", messages}` or `{type: "completion", content}`. */
  readonly value: PromptFields;
  readonly onChange: (value: PromptFields) => void;
  readonly format?: TemplateFormat;
  readonly isReadOnly?: boolean;
}

const asFields = (value: unknown): { readonly value: PromptFields } | string =>
  isFields(value) ? { value } : "This has to be a JSON object.";

const asAnything = (value: unknown): { readonly value: unknown } => ({ value });

interface BlockProps {
  readonly message: unknown;
  readonly index: number;
  readonly count: number;
  readonly format: TemplateFormat;
  readonly isReadOnly: boolean;
  readonly onChange: (message: unknown) => void;
  readonly onMove: (by: number) => void;
  readonly onRemove: () => void;
}

interface PartProps {
  readonly part: unknown;
  readonly label: string;
  readonly format: TemplateFormat;
  readonly isReadOnly: boolean;
  readonly onChange: (part: unknown) => void;
  readonly onRemove: () => void;
}

function PartField({ part, label, format, isReadOnly, onChange, onRemove }: PartProps) {
  const shown = partText(part);
  const title = shown === null ? "Part" : shown.kind === "text" ? "Text" : "Address of the image";
  return (
    <div className={style["part"]}>
      {shown === null ? (
        <JsonField label={`${title} ${label}`} value={part} read={asAnything} onValue={onChange} isReadOnly={isReadOnly} />
      ) : (
        <TemplateField
          label={`${title} ${label}`}
          text={shown.text}
          placeholder={shown.kind === "image" ? "An address, or {{variable}}" : ""}
          {...{ format, isReadOnly }}
          onText={(text) => onChange(withPartText(part, text))}
        />
      )}
      {!isReadOnly && <IconButton icon="close" label={`Remove the part ${label}`} onClick={onRemove} />}
    </div>
  );
}

function Content({ message, index, format, isReadOnly, onChange }: BlockProps & { readonly message: PromptFields }) {
  const content = contentOf(message);
  const at = `of message ${index + 1}`;
  if (content === null) {
    return (
      <JsonField
        label={`Content ${at}`}
        value={message["content"]}
        read={asAnything}
        onValue={(value) => onChange({ ...message, content: value })}
        isReadOnly={isReadOnly}
      />
    );
  }
  if (typeof content === "string") {
    // an assistant that only calls tools has no text
    const hasOnlyCalls = content === "" && isReadOnly && Object.keys(restOf(message)).length > 0;
    if (hasOnlyCalls) return null;
    return (
      <TemplateField
        label={`Text ${at}`}
        text={content}
        {...{ format, isReadOnly }}
        onText={(text) => onChange({ ...message, content: text })}
      />
    );
  }
  return (
    <>
      {content.map((part, place) => (
        <PartField
          key={place}
          part={part}
          label={`${place + 1} ${at}`}
          {...{ format, isReadOnly }}
          onChange={(next) => onChange({ ...message, content: replaced(content, place, next) })}
          onRemove={() => onChange({ ...message, content: removed(content, place) })}
        />
      ))}
    </>
  );
}

function Role({ message, index, isReadOnly, onChange }: BlockProps) {
  const role = roleOf(message);
  if (!isFields(message)) return <span className={style["role"]}>Message {index + 1}</span>;
  return (
    <select
      className={style["role"]}
      aria-label={`Role of message ${index + 1}`}
      value={role}
      disabled={isReadOnly}
      onChange={(event) => onChange({ ...message, role: event.currentTarget.value })}
    >
      {[...new Set([...ROLES, role])].map((one) => (
        <option key={one} value={one}>
          {one === "" ? "no role" : one}
        </option>
      ))}
    </select>
  );
}

/** The menu of a message. */
function itemsOf({ message, onChange, onRemove }: BlockProps, isJson: boolean, setJson: (is: boolean) => void): readonly MenuItem[] {
  const kinds: readonly MenuItem[] = isFields(message)
    ? [
        { id: "text", title: "Add a text part", run: () => onChange(withPart(message, "text")) },
        { id: "image", title: "Add an image", run: () => onChange(withPart(message, "image")) },
        ...(roleOf(message) === "assistant" ? [{ id: "call", title: "Add a tool call", run: () => onChange(withToolCall(message)) }] : []),
        { id: "json", title: isJson ? "Edit the text" : "Edit the JSON", run: () => setJson(!isJson) },
      ]
    : [];
  return [...kinds, { id: "remove", title: "Remove the message", run: onRemove }];
}

function Block(props: BlockProps) {
  const { message, index, count, isReadOnly, onChange, onMove } = props;
  const [isJson, setJson] = useState(false);
  const rest = isFields(message) ? restOf(message) : {};
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const by = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    if (by === 0 || !event.altKey || event.ctrlKey || event.metaKey || isReadOnly) return;
    event.preventDefault();
    onMove(by);
  };
  return (
    <li className={style["block"]} data-role={roleOf(message)} onKeyDown={onKeyDown}>
      <header className={style["head"]}>
        <Role {...props} />
        {!isReadOnly && (
          <>
            <IconButton icon="up" label={`Move message ${index + 1} up`} hint="Move up (alt ↑)" aria-disabled={index === 0} onClick={() => onMove(-1)} />
            <IconButton icon="down" label={`Move message ${index + 1} down`} hint="Move down (alt ↓)" aria-disabled={index === count - 1} onClick={() => onMove(1)} />
            <Menu label={`Actions of message ${index + 1}`} isAlone button={<Icon name="more" />} items={itemsOf(props, isJson, setJson)} />
          </>
        )}
      </header>
      {isFields(message) && !isJson ? (
        <>
          <Content {...props} message={message} />
          {Object.keys(rest).length > 0 && (
            <JsonField
              label={`Other fields of message ${index + 1}`}
              value={rest}
              read={asFields}
              whenEmpty={{ value: {} }}
              onValue={(value) => onChange(withRest(message, value))}
              isReadOnly={isReadOnly}
            />
          )}
        </>
      ) : (
        <JsonField
          label={`JSON of message ${index + 1}`}
          value={message}
          read={asFields}
          onValue={onChange}
          isReadOnly={isReadOnly}
        />
      )}
    </li>
  );
}

function Messages({ label, value, onChange, format = "mustache", isReadOnly = false }: MessageEditorProps) {
  const messages = messagesIn(value);
  const keys = useKeys(messages.length);
  const { list, focusBlock, after } = useFocusAfter();
  const [said, setSaid] = useState("");
  const move = (index: number, by: number): void => {
    const to = index + by;
    if (to < 0 || to >= messages.length) return;
    const focused = document.activeElement;
    keys.change((all) => moved(all, index, by));
    after(() => focused instanceof HTMLElement && focused.focus());
    onChange(withMessageList(value, (all) => moved(all, index, by)));
    setSaid(`The message is now number ${to + 1} of ${messages.length}.`);
  };
  const remove = (index: number): void => {
    keys.change((all) => removed(all, index));
    focusBlock(Math.min(index, messages.length - 2));
    onChange(withMessageList(value, (all) => removed(all, index)));
    setSaid("The message is removed.");
  };
  const add = (): void => {
    focusBlock(messages.length);
    onChange(withMessageList(value, (all) => [...all, { role: nextRole(all), content: "" }]));
  };
  return (
    <div className={style["editor"]} role="group" aria-label={label}>
      <ol ref={list} className={style["blocks"]}>
        {messages.map((message, index) => (
          <Block
            key={keys.all[index]}
            {...{ message, index, format, isReadOnly }}
            count={messages.length}
            onChange={(next) => onChange(withMessageList(value, (all) => replaced(all, index, next)))}
            onMove={(by) => move(index, by)}
            onRemove={() => remove(index)}
          />
        ))}
      </ol>
      {!isReadOnly && (
        <Button look="quiet" icon="plus" onClick={add}>
          Add a message
        </Button>
      )}
      <span className="only-spoken" role="status">
        {said}
      </span>
    </div>
  );
}

export function MessageEditor(props: MessageEditorProps) {
  const { label, value, onChange, format = "mustache", isReadOnly = false } = props;
  if (!isCompletion(value)) return <Messages {...props} />;
  const content = value["content"];
  return (
    <div className={style["editor"]} role="group" aria-label={label}>
      <div className={style["block"]}>
        <TemplateField
          label="Text of the prompt"
          text={typeof content === "string" ? content : ""}
          {...{ format, isReadOnly }}
          onText={(text) => onChange({ ...value, content: text })}
        />
      </div>
    </div>
  );
}
