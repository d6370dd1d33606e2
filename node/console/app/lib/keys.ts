// Turns key presses into commands: single keys, keys with ctrl or cmd, and sequences such as `g h`.

/** What of a key press matters. */
export interface Press {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
  /** Whether AltGr is down, which some systems report as ctrl and alt. */
  readonly altGraph: boolean;
}

/** Keys that a command waits for, one token a press: `mod+k`, `?`, `g h`, `Z` for shift and z. */
export type Sequence = string;

const MODIFIERS: ReadonlySet<string> = new Set(["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"]);

/** How long the second key of a sequence is waited for. */
export const SEQUENCE_MS = 1200;

/** Returns the token of a press, or null for modifiers alone and for combinations that no command uses. */
export function tokenOf(press: Press): string | null {
  if (MODIFIERS.has(press.key) || press.key === "Dead" || press.key === "Unidentified") return null;
  const isCharacter = [...press.key].length === 1;
  const isLetterOrDigit = /^[\p{L}\p{N}]$/u.test(press.key);
  const mod = !press.altGraph && (press.ctrlKey || press.metaKey);
  if (mod) return `mod+${isCharacter ? press.key.toLowerCase() : press.key}`;
  if (press.altKey && !press.altGraph && (isLetterOrDigit || !isCharacter)) return null;
  if (isCharacter) return press.key;
  return press.shiftKey ? `shift+${press.key}` : press.key;
}

const tokensOf = (sequence: Sequence): readonly string[] => sequence.split(" ");

/** Whether all presses of a sequence are held with ctrl or cmd, so that it cannot be typed by accident. */
export const isHeld = (sequence: Sequence): boolean => tokensOf(sequence).every((token) => token.startsWith("mod+"));

/** What a press leads to: a sequence that is complete, or the tokens so far of one that may become complete. */
export interface Step {
  readonly complete: Sequence | null;
  readonly pending: readonly string[];
}

/** Adds a token to those so far. A token that continues nothing starts anew. */
export function step(pending: readonly string[], token: string, sequences: readonly Sequence[]): Step {
  const typed = [...pending, token];
  const complete = sequences.find((sequence) => sequence === typed.join(" "));
  if (complete !== undefined) return { complete, pending: [] };
  const continues = sequences.some((sequence) => sequence.startsWith(`${typed.join(" ")} `));
  if (continues) return { complete: null, pending: typed };
  return pending.length > 0 ? step([], token, sequences) : { complete: null, pending: [] };
}

/** The words on the key caps of a sequence, for the system that the page runs on. */
export function keyCaps(sequence: Sequence, isApple: boolean): readonly string[] {
  return tokensOf(sequence).flatMap((token) => {
    if (token.startsWith("mod+")) return [isApple ? "⌘" : "Ctrl", token.slice(4).toUpperCase()];
    return /^\p{Lu}$/u.test(token) ? ["Shift", token.toLowerCase()] : [token];
  });
}
