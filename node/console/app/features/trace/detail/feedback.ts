// Writes what people say about a span: scores, comments, the expected output and tags.
import { call } from "../../../api/client";
import type { Fields } from "../../../api/narrow";
import type { SpanPlace } from "../../../api/spans";

/** What is said about a span. Tags are added to those that it has; a score of null is removed. */
export interface Feedback {
  readonly scores?: Readonly<Record<string, number | null>>;
  readonly comment?: string;
  readonly expected?: unknown;
  readonly tags?: readonly string[];
}

/** What feedback cannot say: tags that go, and an expected output that is empty again. */
export interface Correction {
  readonly withoutTag?: string;
  readonly expected?: null;
}

export type Said = { readonly feedback: Feedback } | { readonly correction: Correction };

const pathOf = ({ source }: SpanPlace, action: string): string =>
  `/v1/${source.kind}/${encodeURIComponent(source.id)}/${action}`;

/** Whether feedback can be written to the rows of a place: the newest ones of logs and experiments. */
export const takesFeedback = ({ source, version }: SpanPlace): boolean =>
  source.kind !== "playground_logs" && version === "";

function eventOf(id: string, { withoutTag, ...fields }: Correction): Fields {
  const tags = withoutTag === undefined ? {} : { _array_delete: [{ path: ["tags"], delete: [withoutTag] }] };
  return { id, _is_merge: true, ...fields, ...tags };
}

/** Writes in the name of a user; the history of the row shows who it was. */
export async function say(place: SpanPlace, id: string, said: Said, userId: string): Promise<void> {
  const { organization } = place;
  if ("correction" in said) {
    await call("POST", pathOf(place, "insert"), { organization, body: { events: [eventOf(id, said.correction)] }, isExact: true });
    return;
  }
  const metadata = userId === "" ? {} : { metadata: { user_id: userId } };
  const body = { feedback: [{ id, source: "app", ...metadata, ...said.feedback }] };
  await call("POST", pathOf(place, "feedback"), { organization, body, isExact: true });
}
