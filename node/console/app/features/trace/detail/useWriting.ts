// Writes about a span: at once on the screen, then on the server. Each write but a comment can be taken back.
import { useQuery } from "@tanstack/react-query";
import { problemOf } from "../../../lib/errors";
import { isRecord, type Fields } from "../../../api/narrow";
import { cache, sessionQuery } from "../../../api/queries";
import type { SpanPlace } from "../../../api/spans";
import { toast } from "../../../design/Toast";
import { numeric } from "../../../lib/json";
import { spanQuery, spansQuery } from "../queries";
import { say, type Said } from "./feedback";
import { historyQuery } from "./queries";

export interface Writing {
  giveScore(name: string, value: number | null): void;
  addComment(text: string): void;
  addTag(tag: string): void;
  removeTag(tag: string): void;
  setExpected(value: unknown): void;
}

/** What is sent, and what the row looks like afterwards. */
interface Step {
  readonly said: Said;
  readonly change: Fields;
}

interface Write extends Step {
  readonly done: string;
  /** What takes the write back; null if nothing does. */
  readonly back: Step | null;
}

export const tagsOf = (row: Fields): readonly string[] =>
  Array.isArray(row["tags"]) ? row["tags"].filter((tag) => typeof tag === "string") : [];

function scoreWrite(row: Fields, name: string, value: number | null): Write {
  const scores = isRecord(row["scores"]) ? row["scores"] : {};
  return {
    said: { feedback: { scores: { [name]: value } } },
    change: { scores: { ...scores, [name]: value } },
    done: value === null ? `Score ${name} removed` : `Score ${name} saved`,
    back: { said: { feedback: { scores: { [name]: numeric(scores[name]) } } }, change: { scores } },
  };
}

function commentWrite(row: Fields, text: string, userId: string): Write {
  const comments = Array.isArray(row["comments"]) ? row["comments"] : [];
  const comment = { created: new Date().toISOString(), comment: { text }, source: "app", metadata: { user_id: userId } };
  return { said: { feedback: { comment: text } }, change: { comments: [...comments, comment] }, done: "Comment added", back: null };
}

function tagWrite(row: Fields, tag: string, isAdded: boolean): Write {
  const tags = tagsOf(row);
  const adding: Step = { said: { feedback: { tags: [tag] } }, change: { tags: [...tags.filter((one) => one !== tag), tag] } };
  const removing: Step = { said: { correction: { withoutTag: tag } }, change: { tags: tags.filter((one) => one !== tag) } };
  return isAdded
    ? { ...adding, done: `Tag ${tag} added`, back: removing }
    : { ...removing, done: `Tag ${tag} removed`, back: adding };
}

function expectedWrite(row: Fields, value: unknown): Write {
  const step = (expected: unknown): Step => ({
    said: expected === null ? { correction: { expected } } : { feedback: { expected } },
    change: { expected },
  });
  return { ...step(value), done: "Expected output saved", back: step(row["expected"] ?? null) };
}

/** Sends a step and shows it meanwhile. Returns whether it was accepted. */
async function send(place: SpanPlace, id: string, { said, change }: Step, userId: string): Promise<boolean> {
  const key = spanQuery(place, id).queryKey;
  const before = cache.getQueryData(key);
  cache.setQueryData(key, (known: Fields | null | undefined) => (known == null ? known : { ...known, ...change }));
  try {
    await say(place, id, said, userId);
  } catch (error) {
    cache.setQueryData(key, before);
    toast(`Not saved: ${problemOf(error, Date.now()).text}`, true);
    return false;
  }
  void cache.invalidateQueries({ queryKey: spansQuery(place).queryKey, exact: true });
  void cache.invalidateQueries({ queryKey: historyQuery(place, id).queryKey });
  return true;
}

export function useWriting(place: SpanPlace, row: Fields): Writing {
  const userId = useQuery(sessionQuery).data?.user.id ?? "";
  const id = typeof row["id"] === "string" ? row["id"] : "";
  const write = (step: Write): void => {
    void send(place, id, step, userId).then((isSent) => {
      if (!isSent) return;
      const { back } = step;
      toast(step.done, false, back === null ? null : { title: "Undo", run: () => void send(place, id, back, userId) });
    });
  };
  return {
    giveScore: (name, value) => write(scoreWrite(row, name, value)),
    addComment: (text) => write(commentWrite(row, text, userId)),
    addTag: (tag) => write(tagWrite(row, tag, true)),
    removeTag: (tag) => write(tagWrite(row, tag, false)),
    setExpected: (value) => write(expectedWrite(row, value)),
  };
}
