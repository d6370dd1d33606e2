// Verifies the chain of an audit log in the page: all of it the first time, and what is new after that.
import { readChainEnd, readChainPage, type AuditScope } from "../../api/audit";
import { beforeOf, BEGINNING, faultOfEnd, verified, type Entry, type Fault, type Seal, type Verified } from "./chain";

/** Longer logs are verified only when somebody asks for it. */
export const UNASKED_MAX = 20_000;

/** Entries that are verified without a pause, so that the page stays awake. */
const AT_ONCE = 50;

export type Verifying =
  | { readonly step: "waiting"; readonly total: number }
  | { readonly step: "running"; readonly done: number; readonly total: number }
  | { readonly step: "stopped" }
  | { readonly step: "done"; readonly seal: Seal; readonly fault: Fault | null }
  | { readonly step: "failed"; readonly error: unknown };

/** The last entry up to which each log was verified since the page was loaded. */
const verifiedBefore = new Map<string, Seal>();

const pause = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve));

interface Wishes {
  /** Whether to begin at the first entry, whatever was verified before. */
  readonly isWhole: boolean;
  /** Whether somebody asked for it, however long it takes. */
  readonly isAsked: boolean;
  /** An entry that somebody kept. */
  readonly kept: Seal | null;
  readonly signal: AbortSignal;
  readonly tell: (state: Verifying) => void;
}

/** Verifies a page of entries in small parts. */
async function verifiedPage(rows: readonly Entry[], start: Seal, known: readonly Seal[], tell: (seal: Seal) => void): Promise<Verified> {
  let result: Verified = { seal: start, fault: null };
  for (let at = 0; at < rows.length && result.fault === null; at += AT_ONCE) {
    result = verified(rows.slice(at, at + AT_ONCE), result.seal, known);
    tell(result.seal);
    await pause();
  }
  return result;
}

async function run(scope: AuditScope, wishes: Wishes): Promise<Verifying> {
  const { isWhole, isAsked, kept, signal, tell } = wishes;
  const end = (await readChainEnd(scope, signal)) ?? BEGINNING;
  const before = verifiedBefore.get(scope.organizationId) ?? null;
  const known = [end, before, kept].filter((seal) => seal !== null);
  const first = isWhole || before === null ? 1 : before.sequence;
  if (!isAsked && end.sequence - first > UNASKED_MAX) return { step: "waiting", total: end.sequence };
  // what stands where no entry is left to be read
  let result: Verified = { seal: first > 1 ? end : BEGINNING, fault: null };
  let cursor: string | null = "";
  for (let isFirst = true; cursor !== null && result.fault === null; isFirst = false) {
    const page = await readChainPage(scope, first, cursor, signal);
    const [row] = page.rows;
    const start: Seal = isFirst && first > 1 && row !== undefined ? beforeOf(row, first) : result.seal;
    result = await verifiedPage(page.rows, start, known, ({ sequence }) => tell({ step: "running", done: sequence, total: end.sequence }));
    cursor = page.cursor;
    if (signal.aborted) cursor = null;
  }
  return { step: "done", seal: result.seal, fault: result.fault ?? faultOfEnd(result.seal, known) };
}

/** Verifies the chain and tells how it goes. A run that is given up tells nothing more. */
export async function verify(scope: AuditScope, wishes: Wishes): Promise<void> {
  const tell = (state: Verifying): void => {
    if (!wishes.signal.aborted) wishes.tell(state);
  };
  tell({ step: "running", done: 0, total: 0 });
  try {
    const outcome = await run(scope, { ...wishes, tell });
    if (outcome.step === "done" && outcome.fault === null) verifiedBefore.set(scope.organizationId, outcome.seal);
    tell(outcome);
  } catch (error) {
    tell({ step: "failed", error });
  }
}
