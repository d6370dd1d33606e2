// The tags and comments of a span, with fields to add some.
import { useEffect, useRef, useState } from "react";
import { userIn } from "../../../api/history";
import { textOrNull, type Fields } from "../../../api/narrow";
import type { SpanPlace } from "../../../api/spans";
import { Button, IconButton } from "../../../design/Button";
import { parseMoment } from "../../../lib/time";
import { Author } from "./Author";
import style from "./Detail.module.css";
import { Section } from "./Section";
import { commentsOf, textOfComment } from "./changes";
import { tagsOf, type Writing } from "./useWriting";

interface TagsProps {
  readonly row: Fields;
  readonly writing: Writing | null;
  readonly onFilter: ((tag: string, isExcluded: boolean) => void) | undefined;
}

export function Tags({ row, writing, onFilter }: TagsProps) {
  const [text, setText] = useState("");
  const tags = tagsOf(row);
  const tag = text.trim();
  const isNew = tag !== "" && !tags.includes(tag);
  return (
    <Section title="Tags">
      {tags.length === 0 && writing === null && <p className={style["none"]}>No tags</p>}
      <ul className={style["tags"]}>
        {tags.map((one) => (
          <li key={one} className={style["tag"]}>
            <span
              title={onFilter === undefined ? undefined : "Alt click filters by the tag"}
              onClick={(event) => event.altKey && onFilter?.(one, event.shiftKey)}
            >
              {one}
            </span>
            {writing !== null && <IconButton icon="close" label={`Remove the tag ${one}`} onClick={() => writing.removeTag(one)} />}
          </li>
        ))}
      </ul>
      {writing !== null && (
        <form
          className={style["line"]}
          onSubmit={(event) => {
            event.preventDefault();
            if (!isNew) return;
            writing.addTag(tag);
            setText("");
          }}
        >
          <input aria-label="New tag" placeholder="New tag" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <Button type="submit" disabled={!isNew}>
            Add the tag
          </Button>
        </form>
      )}
    </Section>
  );
}

interface CommentsProps {
  readonly place: SpanPlace;
  readonly row: Fields;
  readonly writing: Writing | null;
  /** Whether the field of a new comment takes the focus. */
  readonly isWriting: boolean;
}

export function Comments({ place, row, writing, isWriting }: CommentsProps) {
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const comments = commentsOf(row);
  useEffect(() => {
    if (isWriting) field.current?.focus();
  }, [isWriting]);
  const add = (): void => {
    if (text.trim() === "") return;
    writing?.addComment(text.trim());
    setText("");
  };
  return (
    <Section title="Comments">
      {comments.length === 0 && writing === null && <p className={style["none"]}>No comments</p>}
      <ul className={style["comments"]}>
        {comments.map((comment, index) => (
          <li key={index}>
            <Author
              organization={place.organization}
              userId={userIn(comment["metadata"])}
              source={textOrNull(comment, "source") ?? ""}
              at={parseMoment(textOrNull(comment, "created"))}
            />
            <p className={style["text"]}>{textOfComment(comment)}</p>
          </li>
        ))}
      </ul>
      {writing !== null && (
        <form
          className={style["line"]}
          onSubmit={(event) => {
            event.preventDefault();
            add();
          }}
        >
          <textarea
            ref={field}
            rows={1}
            aria-label="New comment"
            placeholder="New comment"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              add();
            }}
          />
          <Button type="submit" disabled={text.trim() === ""}>
            Comment
          </Button>
        </form>
      )}
    </Section>
  );
}
