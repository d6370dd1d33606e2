// The status line: when the last read was, how long it took, its request id to copy, and the zone of all times.
import { lastCall } from "../api/reads";
import { toast } from "../design/Toast";
import { withKeys } from "../design/Kbd";
import { copyText } from "../lib/clipboard";
import { duration } from "../lib/numbers";
import { prefer, preferences } from "../lib/preferences";
import { clock, fullMoment, zoneName } from "../lib/time";
import style from "./StatusLine.module.css";

async function copyRequest(id: string): Promise<void> {
  const isDone = await copyText(id);
  toast(isDone ? "The request id is copied." : "The browser refused to copy.", !isDone);
}

export function StatusLine() {
  const call = lastCall.value;
  const { zone } = preferences.value;
  const requestId = call?.requestId ?? null;
  return (
    <footer className={style["line"]}>
      {call !== null && (
        <span className={style["read"]} title={fullMoment(call.at)}>
          read {clock(call.at, zone)} · {duration(call.milliseconds)}
        </span>
      )}
      {requestId !== null && (
        <button
          type="button"
          className={style["button"]}
          title={`Copy the request id ${requestId}`}
          onClick={() => void copyRequest(requestId)}
        >
          request {requestId.slice(0, 8)}
        </button>
      )}
      <button
        type="button"
        className={`${style["button"]} ${style["zone"]}`}
        title={withKeys(zone === "utc" ? "Show local times" : "Show times in UTC", "u")}
        onClick={() => prefer({ zone: zone === "utc" ? "local" : "utc" })}
      >
        {zoneName(call?.at ?? new Date(), zone)}
      </button>
    </footer>
  );
}
