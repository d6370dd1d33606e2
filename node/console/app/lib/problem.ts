// What a person is told when something failed.

/** The way out that is offered besides reading. */
export type WayOut = "retry" | "sign-in" | "none";

export interface Problem {
  readonly title: string;
  readonly text: string;
  /** The server's code of the error. */
  readonly code: string | null;
  readonly requestId: string | null;
  readonly wayOut: WayOut;
  /** When trying again makes sense, in milliseconds since 1970. */
  readonly retryAt: number | null;
}

/** A read as a screen shows it. */
export interface Reading<Data> {
  readonly data: Data | undefined;
  readonly problem: Problem | null;
  readonly isReading: boolean;
  readonly again: () => void;
  readonly stop: () => void;
}
