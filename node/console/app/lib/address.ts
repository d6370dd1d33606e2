// Reads and writes the addresses of screens: path segments, and parameters in one order without their defaults.

/** An address below `/app`, taken apart. */
export interface Address {
  /** The decoded segments after `/app`. */
  readonly segments: readonly string[];
  /** The first segment as it is written, because some words are kept for the console's own screens. */
  readonly rawFirst: string;
  readonly query: URLSearchParams;
}

/** How a screen's state becomes an address and back. Equal states give equal strings. */
export interface Codec<State> {
  read(address: Address): State | null;
  write(state: State): string;
}

/** A parameter: its key, its value, and the value that is not written. */
export type Parameter = readonly [key: string, value: string, whenAbsent: string];

/** First segments that no organization has, unless their first letter is escaped. */
const RESERVED: ReadonlySet<string> = new Set(["sign-in", "welcome", "cluster", "assets", "_design"]);

export const isReserved = (segment: string): boolean => RESERVED.has(segment);

/** Encodes as browsers do, so that they leave a written address as it is. */
const encode = (text: string): string =>
  encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\u{fffd}")).replaceAll("'", "%27");

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Longer texts do not stand in an address: servers and people cut long addresses. */
export const MOST_IN_ADDRESS = 1500;

/** What stands before the id of a record that keeps a filter too long for an address. */
export const KEPT = "filter.";

/** Whether a view stands for a long filter. */
export const isKept = (view: string): boolean => view.startsWith(KEPT);

/** Takes an address apart, or returns null if it is not below `/app` or not well-formed. */
export function readAddress(href: string): Address | null {
  const withoutFragment = href.split("#", 1)[0] ?? "";
  const mark = withoutFragment.indexOf("?");
  const path = mark < 0 ? withoutFragment : withoutFragment.slice(0, mark);
  const raw = path.replace(/\/$/, "").split("/").slice(1);
  if (raw[0] !== "app") return null;
  const segments = raw.slice(1).map(decode);
  if (!segments.every((segment) => segment !== null && segment !== "")) return null;
  return {
    segments: segments.filter((segment) => segment !== null),
    rawFirst: raw[1] ?? "",
    query: new URLSearchParams(mark < 0 ? "" : withoutFragment.slice(mark + 1)),
  };
}

/** Writes the address of a screen whose first segment is a word of the console. */
export function screenAddress(words: readonly string[], parameters: readonly Parameter[]): string {
  return ["/app", ...words.map(encode)].join("/") + writeQuery(parameters);
}

/** Writes the address of a screen of an organization. */
export function organizationAddress(
  organization: string,
  rest: readonly string[],
  parameters: readonly Parameter[],
): string {
  const first = isReserved(organization) ? escapeFirst(organization) : encode(organization);
  return ["/app", first, ...rest.map(encode)].join("/") + writeQuery(parameters);
}

function escapeFirst(word: string): string {
  return `%${word.charCodeAt(0).toString(16)}${encode(word.slice(1))}`;
}

function writeQuery(parameters: readonly Parameter[]): string {
  const written = parameters
    .filter(([, value, whenAbsent]) => value !== whenAbsent)
    .map(([key, value]) => `${encode(key)}=${encode(value)}`);
  return written.length === 0 ? "" : `?${written.join("&")}`;
}

/** Reads a parameter that is free text. */
export const textParameter = (query: URLSearchParams, key: string, whenAbsent = ""): string =>
  query.get(key) ?? whenAbsent;

/** Reads a parameter that is one of a few words; anything else counts as absent. */
export function choiceParameter<Choice extends string>(
  query: URLSearchParams,
  key: string,
  choices: readonly Choice[],
  whenAbsent: Choice,
): Choice {
  const text = query.get(key);
  return choices.find((choice) => choice === text) ?? whenAbsent;
}
