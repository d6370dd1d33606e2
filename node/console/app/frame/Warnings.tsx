// The bars below the top bar: whose view is shown, the node does not answer, and the connection is not encrypted.
import { useEffect } from "react";
import { seenAs } from "../api/client";
import { cache, startAnew } from "../api/queries";
import { isCutOff } from "../api/reads";
import { Button } from "../design/Button";
import { classes } from "../design/classes";
import { Icon } from "../design/Icon";
import style from "./Warnings.module.css";

const AGAIN_MS = 5000;

const again = (): void => void cache.refetchQueries({ type: "active" });

function CutOff() {
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (document.visibilityState === "visible") again();
    }, AGAIN_MS);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <p className={style["bar"]} role="alert">
      <Icon name="warning" />
      <span>The node does not answer. This page tries again every 5 seconds.</span>
      <Button onClick={again}>Try now</Button>
    </p>
  );
}

function endSeeing(): void {
  seenAs.value = null;
  void startAnew();
}

/** Stands on every screen as long as somebody else's view is shown. */
function Seen() {
  return (
    <p className={classes(style["bar"], style["seen"])}>
      <Icon name="person" />
      <span>You see what {seenAs.value?.name} sees, and can change nothing.</span>
      <Button onClick={endSeeing}>End</Button>
    </p>
  );
}

export function Warnings({ isSecure }: { readonly isSecure: boolean }) {
  return (
    <section className={style["warnings"]} aria-label="Warnings">
      {seenAs.value !== null && <Seen />}
      {isCutOff.value && <CutOff />}
      {!isSecure && (
        <p className={style["bar"]}>
          <Icon name="warning" />
          <span>This connection is not encrypted. What you see and send here can be read on its way.</span>
        </p>
      )}
    </section>
  );
}
