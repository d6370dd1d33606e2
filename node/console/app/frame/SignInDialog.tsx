// The dialog that signs in again over a page whose session has ended, so that what was typed there stays.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { answerGate, isSignInAsked } from "../api/gate";
import { aboutQuery, enterSession, peekSession } from "../api/queries";
import type { Session } from "../api/schema";
import { Dialog } from "../design/Dialog";
import { SignInForm } from "../features/signin";
import { location } from "../lib/router";

function enter(session: Session): void {
  enterSession(session);
  answerGate(true);
}

function Asked() {
  const about = useQuery(aboutQuery);
  useEffect(() => {
    const look = (): void => {
      if (document.visibilityState !== "visible") return;
      peekSession(new AbortController().signal).then(enter, () => undefined);
    };
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  }, []);
  return (
    <Dialog title="Your session has ended" onClose={() => answerGate(false)}>
      <p>Sign in again to go on. What you typed stays on the page.</p>
      <SignInForm about={about.data} next={location.value} isOverPage onSignedIn={enter} />
    </Dialog>
  );
}

export function SignInDialog() {
  return isSignInAsked.value ? <Asked /> : null;
}
