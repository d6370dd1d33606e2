// Compares two values of JSON path by path.

export interface PathChange {
  readonly path: string;
  readonly kind: "added" | "removed" | "changed";
  readonly before: unknown;
  readonly after: unknown;
}

/** More changes than these are counted by nobody. */
const MOST = 500;

type Container = Readonly<Record<string, unknown>> | readonly unknown[];

const isContainer = (value: unknown): value is Container => typeof value === "object" && value !== null;

const keysOf = (value: Container): readonly string[] => Object.keys(value);

const memberOf = (value: Container, key: string): unknown => (Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined);

function step(path: string, key: string, parent: Container): string {
  if (Array.isArray(parent)) return `${path}[${key}]`;
  const word = /^[A-Za-z_][\w$]*$/.test(key) ? key : JSON.stringify(key);
  return path === "" ? word : `${path}.${word}`;
}

interface Task {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

function tasksBelow({ path, before, after }: Task): readonly Task[] {
  if (!isContainer(before) || !isContainer(after)) return [];
  const keys = [...new Set([...keysOf(before), ...keysOf(after)])];
  return keys.map((key) => ({ path: step(path, key, before), before: memberOf(before, key), after: memberOf(after, key) }));
}

const areBothContainers = ({ before, after }: Task): boolean =>
  isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after);

function changeOf({ path, before, after }: Task): PathChange | null {
  if (Object.is(before, after)) return null;
  const kind = before === undefined ? "added" : after === undefined ? "removed" : "changed";
  return { path: path === "" ? "(whole value)" : path, kind, before, after };
}

/** The paths at which two values differ, in the order in which they stand. */
export function diffPaths(before: unknown, after: unknown): readonly PathChange[] {
  const found: PathChange[] = [];
  const tasks: Task[] = [{ path: "", before, after }];
  while (tasks.length > 0 && found.length < MOST) {
    const task = tasks.pop();
    if (task === undefined) break;
    if (areBothContainers(task)) tasks.push(...tasksBelow(task).toReversed());
    else {
      const change = changeOf(task);
      if (change !== null) found.push(change);
    }
  }
  return found;
}

/** A value as an object or list: itself, or what its text holds; null if it is neither. */
export function structureOf(value: unknown): Container | null {
  if (isContainer(value)) return value;
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return null;
  try {
    const parsed: unknown = JSON.parse(value);
    return isContainer(parsed) ? parsed : null;
  } catch {
    return null;
  }
}
