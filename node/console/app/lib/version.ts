// The version as of which a query reads: now, a moment, or a transaction.

/** Transaction ids have these bits on top, then the seconds since 1970, then a counter of 16 bits. */
const TAG = 0x0de1n << 48n;
const COUNTER_BITS = 16n;
const LAST_OF_SECOND = 0xffffn;

export type Version =
  | { readonly kind: "now" }
  | { readonly kind: "moment"; readonly at: Date }
  | { readonly kind: "transaction"; readonly id: string }
  | { readonly kind: "unknown"; readonly text: string };

/** Reads a version as it stands in the address: a transaction id in digits, its 16 hex digits, or a moment. */
export function readVersion(text: string): Version {
  const trimmed = text.trim();
  if (trimmed === "") return { kind: "now" };
  if (/^(?:\d{1,20}|[\da-f]{16})$/i.test(trimmed)) return { kind: "transaction", id: trimmed };
  const isIso = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/.test(trimmed);
  const at = new Date(trimmed.replace(" ", "T"));
  if (!isIso || Number.isNaN(at.getTime())) return { kind: "unknown", text };
  return { kind: "moment", at };
}

/** The transaction id that comes last in the second of a moment. */
export function transactionAt(moment: Date): string {
  const seconds = BigInt(Math.max(0, Math.floor(moment.getTime() / 1000)));
  return String(TAG | (seconds << COUNTER_BITS) | LAST_OF_SECOND);
}

/** The moment of a transaction, to the second; null if the text is not of a transaction. */
export function momentOf(transaction: string): Date | null {
  const isDecimal = /^\d{17,20}$/.test(transaction);
  if (!isDecimal && !/^[\da-f]{16}$/i.test(transaction)) return null;
  const bits = isDecimal ? BigInt(transaction) : BigInt(`0x${transaction}`);
  if (bits >> 48n !== TAG >> 48n) return null;
  return new Date(Number((bits >> COUNTER_BITS) & 0xffffffffn) * 1000);
}

/** The address of another screen, as of a version. */
export const atVersion = (address: string, version: string): string =>
  version === "" ? address : `${address}${address.includes("?") ? "&" : "?"}version=${encodeURIComponent(version)}`;

/** What the server is sent: an empty text for now, else a transaction id. */
export function sentVersion(version: Version): string {
  switch (version.kind) {
    case "now":
      return "";
    case "moment":
      return transactionAt(version.at);
    case "transaction":
      return version.id;
    case "unknown":
      return version.text;
  }
}
