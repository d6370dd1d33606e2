// Reads a stream of server-sent events, however its bytes are split.

export interface ServerEvent {
  /** The name of the event; `message` where the stream names none. */
  readonly name: string;
  readonly data: string;
}

/** Reads events out of pieces of bytes. What is not ended by an empty line waits for the next piece. */
export class EventReader {
  private readonly decoder = new TextDecoder();
  private rest = "";
  private name = "";
  private data: string[] = [];

  /** Takes the next bytes and returns the events that they end. */
  take(bytes: Uint8Array): readonly ServerEvent[] {
    return this.read(this.decoder.decode(bytes, { stream: true }));
  }

  private read(text: string): readonly ServerEvent[] {
    const events: ServerEvent[] = [];
    // A line break of two characters may be split: its first half waits.
    const all = this.rest + text;
    const isHalf = all.endsWith("\r");
    const lines = (isHalf ? all.slice(0, -1) : all).split(/\r\n|\r|\n/);
    this.rest = (lines.pop() ?? "") + (isHalf ? "\r" : "");
    for (const line of lines) {
      const event = this.line(line);
      if (event !== null) events.push(event);
    }
    return events;
  }

  private line(line: string): ServerEvent | null {
    if (line === "") {
      const event = this.data.length === 0 ? null : { name: this.name === "" ? "message" : this.name, data: this.data.join("\n") };
      this.name = "";
      this.data = [];
      return event;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
    return null;
  }
}

/** The events of a body, as they arrive. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = body.getReader();
  const events = new EventReader();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) yield* events.take(piece.value);
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
