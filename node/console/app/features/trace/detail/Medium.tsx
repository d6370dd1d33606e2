// An image, a recording, a film or a file of a span: shown where its bytes are here, else a link that says where it leads.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { problemOf } from "../../../lib/errors";
import { Dialog } from "../../../design/Dialog";
import type { Media, MediaKind } from "../messages/forms";
import { kindOf } from "../messages/media";
import style from "./Conversation.module.css";
import { blobIn } from "./images";
import { attachmentQuery } from "./queries";

function useObjectUrl(blob: Blob | null): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (blob === null) {
      setUrl(null);
      return undefined;
    }
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url;
}

/** The host of an address of the web; null for anything else. */
function hostOf(url: string): string | null {
  try {
    const parsed = new URL(url);
    return ["http:", "https:"].includes(parsed.protocol) ? parsed.host : null;
  } catch {
    return null;
  }
}

const NAMES = { image: "Image", audio: "Audio", video: "Video", file: "File" } as const;

function Image({ source, name }: { readonly source: string; readonly name: string }) {
  const [isLarge, setLarge] = useState(false);
  const [isBroken, setBroken] = useState(false);
  const words = name === "" ? "Image" : name;
  if (isBroken) return <span className={style["away"]}>{words} cannot be shown as an image</span>;
  return (
    <>
      <button type="button" className={style["picture"]} aria-label={`Show ${words} in full size`} onClick={() => setLarge(true)}>
        <img src={source} alt={words} onError={() => setBroken(true)} />
      </button>
      {isLarge && (
        <Dialog title={words} form="wide" onClose={() => setLarge(false)}>
          <img className={style["large"]} src={source} alt={`${words} in full size`} />
        </Dialog>
      )}
    </>
  );
}

interface ShownProps {
  readonly kind: MediaKind;
  readonly source: string;
  readonly name: string;
}

function Shown({ kind, source, name }: ShownProps) {
  switch (kind) {
    case "image":
      return <Image source={source} name={name} />;
    case "audio":
      return <audio className={style["player"]} controls preload="none" src={source} aria-label={name || "Audio"} />;
    case "video":
      return <video className={style["player"]} controls preload="none" src={source} aria-label={name || "Video"} />;
    case "file":
      return (
        <a className={style["away"]} href={source} download={name || "file"}>
          Download {name || "the file"}
        </a>
      );
  }
}

function Stored({ organization, kind, media }: { readonly organization: string; readonly kind: MediaKind; readonly media: Media }) {
  const reading = useQuery(attachmentQuery(organization, media));
  const name = media.name || NAMES[kind];
  if (reading.isPending) return <span className={style["away"]}>{name}</span>;
  if (reading.isError) {
    return <span className={style["away"]}>{name} cannot be shown: {problemOf(reading.error, Date.now()).text}</span>;
  }
  if (reading.data.status !== "done") return <span className={style["away"]}>{name} has not been uploaded yet</span>;
  return (
    <>
      <Shown kind={kind} source={reading.data.path} name={media.name} />
      {kind !== "file" && (
        <a className={style["download"]} href={reading.data.path} download={media.name || name}>
          Download {name}
        </a>
      )}
    </>
  );
}

interface MediumProps {
  readonly organization: string;
  readonly kind: MediaKind;
  readonly media: Media;
}

export function Medium({ organization, kind: given, media }: MediumProps) {
  const kind = given === "file" ? kindOf(media.type) : given;
  const blob = useMemo(() => (media.key === "" ? blobIn(kind, media.url) : null), [kind, media]);
  const source = useObjectUrl(blob);
  if (media.key !== "") return <Stored organization={organization} kind={kind} media={media} />;
  if (source !== null) return <Shown kind={kind} source={source} name={media.name} />;
  const host = hostOf(media.url);
  const name = media.name === "" ? NAMES[kind] : `${NAMES[kind]} ${media.name}`;
  if (host !== null) {
    return (
      <a className={style["away"]} href={media.url} target="_blank" rel="noopener noreferrer" title={media.url.slice(0, 400)}>
        {name} at {host}
      </a>
    );
  }
  const size = media.url.length;
  return <span className={style["away"]}>{name}{size > 0 && blob === null ? `, ${size.toLocaleString("en-US")} characters that cannot be shown` : ""}</span>;
}
