// What the status line tells of the last call, and whether the node can be reached.
import { signal } from "@preact/signals";

export interface Call {
  readonly at: Date;
  readonly milliseconds: number;
  readonly requestId: string | null;
}

export const lastCall = signal<Call | null>(null);

/** Whether the last call got no answer. */
export const isCutOff = signal(false);
