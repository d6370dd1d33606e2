// Which screens the server serves.

/** The screens of a version of the server that named no others yet. */
const BEFORE_LOGS: ReadonlySet<string> = new Set(["signin", "home", "welcome"]);

/**
 * Whether a screen can be shown. The server lists what it serves; a list that was written before there were logs says
 * nothing of later screens.
 */
export function isServed(served: readonly string[] | undefined, part: string): boolean {
  if (served === undefined || served.includes(part)) return true;
  return !BEFORE_LOGS.has(part) && served.every((one) => BEFORE_LOGS.has(one));
}
