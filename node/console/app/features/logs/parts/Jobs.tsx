// The lines of the jobs that run: what they do, how far they are, and how they are cancelled.
import { useEffect } from "react";
import { Button } from "../../../design/Button";
import { endJob, findJobs, lookAtJobs, progressWords, runningJobs } from "../jobs";
import style from "./Jobs.module.css";

const LOOK_MS = 1000;

/** Looks at the jobs while there are any and the page can be seen. */
function useLooking(organization: string, isAny: boolean): void {
  useEffect(() => {
    const control = new AbortController();
    void findJobs(organization, control.signal).catch(() => undefined);
    return () => control.abort();
  }, [organization]);
  useEffect(() => {
    if (!isAny) return undefined;
    const control = new AbortController();
    let timer = 0;
    const loop = (): void => {
      timer = window.setTimeout(() => {
        const look = document.hidden ? Promise.resolve() : lookAtJobs(control.signal);
        void look.catch(() => undefined).then(() => control.signal.aborted || loop());
      }, LOOK_MS);
    };
    loop();
    return () => {
      control.abort();
      window.clearTimeout(timer);
    };
  }, [isAny]);
}

export function Jobs({ organization }: { readonly organization: string }) {
  const jobs = runningJobs.value.filter((one) => one.organization === organization);
  useLooking(organization, jobs.length > 0);
  if (jobs.length === 0) return null;
  return (
    <ul className={style["jobs"]} aria-label="Jobs">
      {jobs.map((one) => (
        <li key={one.job.id} className={style["job"]}>
          <span className={style["title"]}>{one.title}</span>
          <progress
            className={style["progress"]}
            aria-label={one.title}
            {...(one.job.matched === null ? {} : { max: Math.max(one.job.matched, 1), value: one.job.done })}
          />
          <span className={style["count"]}>{progressWords(one.job)}</span>
          <Button onClick={() => void endJob(one)}>Cancel</Button>
        </li>
      ))}
    </ul>
  );
}
