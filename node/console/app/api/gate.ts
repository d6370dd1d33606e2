// Asks for a new sign-in when a session ends while its page is open, and lets the waiting calls go on afterwards.
import { signal } from "@preact/signals";

interface Waiting {
  readonly answered: Promise<boolean>;
  readonly answer: (isSignedIn: boolean) => void;
}

let waiting: Waiting | null = null;
let isArmed = false;

/** Whether the dialog that signs in has to be open. */
export const isSignInAsked = signal(false);

/** Called when a session was seen: from now on an answer 401 means that it has ended. */
export function armGate(): void {
  isArmed = true;
}

/** Called when somebody signs out: answers 401 are what is expected then. */
export function disarmGate(): void {
  isArmed = false;
}

/** Opens the dialog, and tells whether somebody signed in again. */
export function askToSignIn(): Promise<boolean> {
  if (waiting === null) {
    let answer: (isSignedIn: boolean) => void = () => undefined;
    const answered = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    waiting = { answered, answer };
    isSignInAsked.value = true;
  }
  return waiting.answered;
}

/** What a call does on an answer 401: it waits for the dialog, unless there never was a session or it was dismissed. */
export const passGate = (): Promise<boolean> => (isArmed ? askToSignIn() : Promise.resolve(false));

/** Closes the dialog. A dismissed dialog does not come back by itself. */
export function answerGate(isSignedIn: boolean): void {
  isArmed = isSignedIn;
  isSignInAsked.value = false;
  waiting?.answer(isSignedIn);
  waiting = null;
}
