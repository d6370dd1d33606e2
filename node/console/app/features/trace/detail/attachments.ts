// Finds the attachments that a row refers to, wherever they stand in its contents.
import { isFields, type Fields, type Media } from "../messages/forms";
import { attachmentIn } from "../messages/media";

const FIELDS = ["input", "output", "expected", "metadata", "context"] as const;

/** The most values that are looked at, so that a huge row does not hold up the page. */
const VALUES_MAX = 200_000;

/** The attachments of a row, each once, in the order in which they are found. */
export function attachmentsOf(row: Fields): readonly Media[] {
  const found = new Map<string, Media>();
  const open: unknown[] = FIELDS.map((field) => row[field]).reverse();
  for (let looked = 0; open.length > 0 && looked < VALUES_MAX; looked += 1) {
    const value = open.pop();
    const media = attachmentIn(value);
    if (media !== null) found.set(`${media.key} ${media.url}`, media);
    else if (Array.isArray(value)) for (let at = value.length - 1; at >= 0; at -= 1) open.push(value[at]);
    else if (isFields(value)) open.push(...Object.values(value).reverse());
  }
  return [...found.values()];
}
