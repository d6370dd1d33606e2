// What VersionControl shows, whose code is loaded when it is first needed.
import { useEffect } from "react";
import { announce } from "../lib/store";
import { Button } from "./Button";
import { Icon } from "./Icon";
import style from "./VersionControl.module.css";
import type { VersionControlProps } from "./VersionControl";
import { VersionDialog } from "./VersionControlDialog";
import { versionWords } from "./VersionControlWords";

/** The band that says that the past is shown, and leads back. */
function Band({ version, onVersion, onChoosing }: VersionControlProps) {
  const words = versionWords(version);
  useEffect(() => {
    if (words !== null) announce(`You see the state of ${words}`);
  }, [words]);
  return (
    <div className={style["band"]} role="region" aria-label="Version">
      <Icon name="history" />
      <span className={style["words"]}>
        {words === null ? (
          <>
            <strong>{version}</strong> is not a version. A version is a moment or a transaction id.
          </>
        ) : (
          <>
            You see the state of <strong>{words}</strong>. Read only.
          </>
        )}
      </span>
      <Button onClick={() => onChoosing(true)}>Change</Button>
      <Button onClick={() => onVersion("")}>Back to now</Button>
    </div>
  );
}

export function VersionControlParts(props: VersionControlProps) {
  const { version, newest, isChoosing, onChoosing, onVersion } = props;
  return (
    <>
      {version !== "" && <Band {...props} />}
      {isChoosing && (
        <VersionDialog {...{ version, onVersion }} newest={newest ?? null} onClose={() => onChoosing(false)} />
      )}
    </>
  );
}
