// The screen that signs in: one card, and which server this is.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { aboutQuery, enterSession, peekSession } from "../../api/queries";
import type { About } from "../../api/schema";
import { Icon } from "../../design/Icon";
import { navigate } from "../../lib/router";
import { SignInForm } from "./parts/SignInForm";
import style from "./screen.module.css";
import type { SignInState } from "./url";

function ServerFacts({ about }: { readonly about: About }) {
  return (
    <dl className={style["facts"]}>
      {about.node !== null && (
        <div>
          <dt>Node</dt>
          <dd>{about.node}</dd>
        </div>
      )}
      <div>
        <dt>Cluster</dt>
        <dd>{about.cluster}</dd>
      </div>
      <div>
        <dt>Version</dt>
        <dd>{about.version}</dd>
      </div>
    </dl>
  );
}

const PROBLEM_TEXTS: Readonly<Record<SignInState["problem"], string>> = {
  "": "",
  unavailable: "The identity provider does not answer. Try again in a moment, or sign in with a key.",
  denied: "The identity provider did not let you sign in. Ask its administrator, or sign in with a key.",
  not_here: "This sign-in was started in another browser or more than ten minutes ago. Start it again here.",
  used_link: "This sign-in link was used already, or has expired. Sign in with the API key that the server printed.",
};

export function SignInScreen({ state }: { readonly state: SignInState }) {
  const about = useQuery(aboutQuery);
  useEffect(() => {
    const abort = new AbortController();
    peekSession(abort.signal).then(
      (session) => {
        enterSession(session);
        navigate(state.next, "replace");
      },
      () => undefined,
    );
    return () => abort.abort();
  }, [state.next]);
  return (
    <main className={style["page"]}>
      <div className={style["card"]}>
        <h1 tabIndex={-1}>Sign in to Assay</h1>
        {about.data?.isSecure === false && (
          <p className={style["warning"]}>
            <Icon name="warning" />
            This connection is not encrypted. A key that you enter here can be read on its way.
          </p>
        )}
        {state.problem !== "" && (
          <p className={style["warning"]} role="alert">
            <Icon name="warning" />
            {PROBLEM_TEXTS[state.problem]}
          </p>
        )}
        <SignInForm
          about={about.data}
          next={state.next}
          isOverPage={false}
          onSignedIn={(session) => {
            enterSession(session);
            navigate(state.next, "replace");
          }}
        />
        {about.data !== undefined && about.data.firstKey !== null && (
          <div className={style["first"]}>
            <h2>Nobody has signed in yet</h2>
            <p>The first key was printed here:</p>
            <p className={style["where"]}>{about.data.firstKey}</p>
          </div>
        )}
      </div>
      {about.data !== undefined && <ServerFacts about={about.data} />}
    </main>
  );
}
