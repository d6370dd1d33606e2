// Media in data URLs. Images are recognized by their first bytes, and only formats that cannot hold a script are shown.
import type { MediaKind } from "../messages/forms";

const starts = (bytes: Uint8Array, head: readonly number[]): boolean => head.every((byte, index) => bytes[index] === byte);

const ascii = (bytes: Uint8Array, from: number, to: number): string => String.fromCharCode(...bytes.slice(from, to));

const MAGIC: readonly (readonly [type: string, matches: (bytes: Uint8Array) => boolean])[] = [
  ["image/png", (bytes) => starts(bytes, [0x89, 0x50, 0x4e, 0x47])],
  ["image/jpeg", (bytes) => starts(bytes, [0xff, 0xd8, 0xff])],
  ["image/gif", (bytes) => starts(bytes, [0x47, 0x49, 0x46, 0x38])],
  ["image/webp", (bytes) => ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 12) === "WEBP"],
  ["image/avif", (bytes) => ascii(bytes, 4, 8) === "ftyp" && ["avif", "avis"].includes(ascii(bytes, 8, 12))],
];

/** The media type of an image by its first bytes; null for anything else, also for SVG. */
export const imageType = (bytes: Uint8Array): string | null => MAGIC.find(([, matches]) => matches(bytes))?.[0] ?? null;

/** Types of recordings and films that are played. */
const PLAYED = /^(?:audio\/(?:wav|x-wav|wave|mpeg|mp3|mp4|ogg|webm|flac|aac)|video\/(?:mp4|webm|ogg))$/;

interface Data {
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Decodes a data URL in base64; null if it is none. */
export function dataIn(url: string): Data | null {
  const head = /^data:([^,;]{0,100})[^,]{0,100};base64,/.exec(url.slice(0, 300));
  if (head === null) return null;
  try {
    const text = atob(url.slice(head[0].length).replace(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/"));
    return { type: (head[1] ?? "").toLowerCase(), bytes: Uint8Array.from(text, (letter) => letter.charCodeAt(0)) };
  } catch {
    return null;
  }
}

/** The type under which bytes are shown or saved; null if they are not. */
function safeType(kind: MediaKind, { type, bytes }: Data): string | null {
  if (kind === "image") return imageType(bytes);
  if (kind === "file") return "application/octet-stream";
  return PLAYED.test(type) ? type : null;
}

/** Decodes what a data URL shows of a kind; null if that cannot be shown. */
export function blobIn(kind: MediaKind, url: string): Blob | null {
  if (!url.startsWith("data:")) return null;
  const data = dataIn(url);
  const type = data === null ? null : safeType(kind, data);
  return data === null || type === null ? null : new Blob([data.bytes], { type });
}
