// Joins calls of tools with what the tools returned, and compares conversations by their beginnings.
import { printJson } from "../../../lib/json";
import type { Message, Part, ResultPart } from "./forms";

export interface Joined {
  /** The messages without results that stand beside their call, and without messages that had nothing else. */
  readonly messages: readonly Message[];
  /** What a call returned. */
  readonly resultOf: ReadonlyMap<Part, ResultPart>;
}

/** Joins each call with the first result of its id that follows it and has no other call. */
export function withResults(messages: readonly Message[]): Joined {
  const waiting = new Map<string, Part[]>();
  const resultOf = new Map<Part, ResultPart>();
  const joined = new Set<Part>();
  for (const part of messages.flatMap((message) => message.parts)) {
    if (part.kind === "call") {
      const others = waiting.get(part.id);
      if (others === undefined) waiting.set(part.id, [part]);
      else others.push(part);
    }
    if (part.kind !== "result") continue;
    const call = waiting.get(part.id)?.shift();
    if (call === undefined) continue;
    resultOf.set(call, part);
    joined.add(part);
  }
  const rest = messages.flatMap((message) => {
    const parts = message.parts.filter((part) => !joined.has(part));
    if (parts.length === message.parts.length) return [message];
    return parts.length === 0 ? [] : [{ ...message, parts }];
  });
  return { messages: rest, resultOf };
}

/** How many messages at the beginning of a conversation are those of another one. */
export function sharedStart(before: readonly Message[], messages: readonly Message[]): number {
  let count = 0;
  while (count < messages.length && count < before.length) {
    if (printJson(before[count], 0) !== printJson(messages[count], 0)) break;
    count += 1;
  }
  return count;
}
