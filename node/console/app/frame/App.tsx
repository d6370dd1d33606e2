// Decides what the page shows: the sign-in, a screen in its frame, or why neither can be shown.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { askToSignIn } from "../api/gate";
import { isSignedOut } from "../lib/errors";
import { aboutQuery, readingOf, sessionQuery } from "../api/queries";
import { Loaded } from "../design/Loaded";
import { Toasts } from "../design/Toast";
import { links, placeOf, titleOf, type Place } from "../routes";
import { location, navigate } from "../lib/router";
import { announce, spoken } from "../lib/store";
import style from "./App.module.css";
import { focusScreen, followWithFocus } from "./focus";
import { Frame } from "./Frame";
import { Guard } from "./Guard";
import { NotFound } from "./NotFound";
import { Screen } from "./Screen";
import { SignInDialog } from "./SignInDialog";

/** Names the page, and after going to another screen says its name and moves the focus to it. */
function useTitle(place: Place): void {
  const title = titleOf(place);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    announce(titleOf(place));
    followWithFocus();
    focusScreen();
  }, [place.at]);
}

/** The page for somebody who may be signed in. */
function Inside({ place }: { readonly place: Place }) {
  const session = useQuery(sessionQuery);
  const about = useQuery(aboutQuery);
  const isOutside = session.data === undefined && isSignedOut(session.error);
  const isUnknown = place.at === "unknown";
  useEffect(() => {
    if (isOutside && !isUnknown) navigate(links.signIn(location.peek()), "replace");
  }, [isOutside, isUnknown]);
  if (isOutside) {
    return isUnknown ? (
      <main className={style["bare"]} tabIndex={-1}>
        <NotFound />
      </main>
    ) : null;
  }
  if (session.data === undefined) {
    return (
      <main className={style["bare"]} tabIndex={-1}>
        <Loaded reading={readingOf(session)} skeleton={<p>Reading who you are</p>} onSignIn={() => void askToSignIn()}>
          {() => null}
        </Loaded>
      </main>
    );
  }
  return <Frame place={place} session={session.data} about={about.data} />;
}

export function App() {
  const place = placeOf(location.value);
  useTitle(place);
  return (
    <>
      <Guard>
        {place.at === "signin" ? (
          <Screen place={place} session={undefined} served={undefined} />
        ) : (
          <Inside place={place} />
        )}
      </Guard>
      <SignInDialog />
      <Toasts />
      <div className="only-spoken" role="status" aria-label="What changed">
        {spoken.value}
      </div>
    </>
  );
}
