// Reads images, recordings, films and files of messages, and the attachments that stand for them.
import { firstText, isFields, textOf, type Fields, type Media, type MediaKind, type Part } from "./forms";

const NONE: Media = { url: "", type: "", name: "", key: "" };

const typeIn = (fields: Fields): string =>
  firstText(fields["media_type"], fields["mediaType"], fields["mime_type"], fields["mimeType"], fields["content_type"]);

const nameIn = (fields: Fields): string => firstText(fields["filename"], fields["file_name"], fields["name"], fields["title"]);

/** The kind of a media type: `image/png` is an image. */
export function kindOf(type: string): MediaKind {
  const [family = ""] = type.split("/");
  return family === "image" || family === "audio" || family === "video" ? family : "file";
}

/** Reads a reference to an attachment; null if a value is none. */
export function attachmentIn(value: unknown): Media | null {
  if (!isFields(value)) return null;
  const base = { type: textOf(value["content_type"]), name: textOf(value["filename"]) };
  const [key, url] = [textOf(value["key"]), textOf(value["url"])];
  if (value["type"] === "braintrust_attachment" && key !== "") return { ...base, key, url: "" };
  if (value["type"] === "external_attachment" && url !== "") return { ...base, key: "", url };
  return null;
}

const ADDRESS = /^(?:data:|[a-z][a-z0-9+.-]*:\/\/)/i;

/** An address, or data in base64 of a type. */
function ofText(text: string, type: string, name: string): Media {
  if (text === "") return { ...NONE, type, name };
  if (!ADDRESS.test(text)) return { ...NONE, url: `data:${type};base64,${text}`, type, name };
  const own = /^data:([\w.+-]+\/[\w.+-]+)/.exec(text)?.[1] ?? "";
  return { ...NONE, url: text, type: own === "" ? type : own, name };
}

/** Reads media from an address, data, an attachment, or an object with one of these. */
export function mediaIn(value: unknown, type = "", name = ""): Media {
  if (typeof value === "string") return ofText(value, type, name);
  if (!isFields(value)) return { ...NONE, type, name };
  const attachment = attachmentIn(value);
  if (attachment !== null) return attachment;
  if (value["type"] === "text" && typeof value["data"] === "string") {
    return { ...NONE, url: `data:text/plain,${encodeURIComponent(value["data"])}`, type: "text/plain", name };
  }
  const ownType = firstText(typeIn(value), type);
  const ownName = firstText(nameIn(value), name);
  for (const key of ["url", "source", "image_url", "file", "file_data", "uri", "fileUri", "file_uri", "data", "bytes", "content", "image"]) {
    const inner = value[key];
    if (inner === undefined || inner === null || inner === "") continue;
    if (typeof inner === "string" || isFields(inner)) return mediaIn(inner, ownType, ownName);
  }
  return { ...NONE, type: ownType, name: firstText(ownName, value["file_id"], value["id"]) };
}

/** A part with media, of the kind that its type names, or else of the kind that is given. */
export function mediaPart(value: unknown, kind: MediaKind, type = ""): Part {
  const media = mediaIn(value, type);
  const named = kindOf(media.type);
  return { kind: kind === "file" && named !== "file" ? named : kind, media };
}
