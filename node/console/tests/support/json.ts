// Reads into answers whose form is not known to the compiler. What is missing fails with its path.

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at a path, or undefined. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let found: unknown = value;
  for (const step of path) {
    if (typeof step === "number" && Array.isArray(found)) found = found[step];
    else if (typeof step === "string" && isRecord(found)) found = found[step];
    else return undefined;
  }
  return found;
}

const complain = (value: unknown, path: readonly (string | number)[], kind: string): Error =>
  new Error(`no ${kind} at ${path.join(".")} of ${JSON.stringify(value)?.slice(0, 600)}`);

export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  if (typeof found !== "string") throw complain(value, path, "text");
  return found;
}

export function numberAt(value: unknown, ...path: readonly (string | number)[]): number {
  const found = at(value, ...path);
  if (typeof found !== "number") throw complain(value, path, "number");
  return found;
}

export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found: unknown = at(value, ...path);
  if (!Array.isArray(found)) throw complain(value, path, "list");
  return found;
}
