// Short notices below the screen, which gets smaller meanwhile, so that nothing is covered. Good news goes away by itself; failures stay until they are closed.
import { signal } from "@preact/signals";
import { useEffect } from "react";
import { Button, IconButton } from "./Button";
import { classes } from "./classes";
import style from "./Toast.module.css";

/** What can be done about a notice, as long as it is shown. */
export interface NoticeAction {
  readonly title: string;
  readonly run: () => void;
  /** How long the notice is shown, in milliseconds; absent for the usual time. */
  readonly shownMs?: number;
}

interface Notice {
  readonly id: number;
  readonly text: string;
  readonly isFailure: boolean;
  readonly action: NoticeAction | null;
}

const SHOWN_MS = 6000;
const WITH_ACTION_MS = 10_000;

const notices = signal<readonly Notice[]>([]);
let lastId = 0;

function close(id: number): void {
  notices.value = notices.peek().filter((notice) => notice.id !== id);
}

export function toast(text: string, isFailure = false, action: NoticeAction | null = null): void {
  lastId += 1;
  notices.value = [...notices.peek().slice(-2), { id: lastId, text, isFailure, action }];
}

function Shown({ notice }: { readonly notice: Notice }) {
  useEffect(() => {
    if (notice.isFailure) return undefined;
    const usual = notice.action === null ? SHOWN_MS : WITH_ACTION_MS;
    const timer = window.setTimeout(() => close(notice.id), notice.action?.shownMs ?? usual);
    return () => window.clearTimeout(timer);
  }, [notice]);
  return (
    <div className={classes(style["notice"], notice.isFailure && style["failure"])}>
      <span className={style["text"]}>{notice.text}</span>
      {notice.action !== null && (
        <Button
          onClick={() => {
            close(notice.id);
            notice.action?.run();
          }}
        >
          {notice.action.title}
        </Button>
      )}
      <IconButton icon="close" label="Close this notice" onClick={() => close(notice.id)} />
    </div>
  );
}

/** Where notices appear. It is always in the page, so that screen readers follow it. */
export function Toasts() {
  return (
    <div className={style["toasts"]} role="status" aria-label="Notices">
      {notices.value.map((notice) => (
        <Shown key={notice.id} notice={notice} />
      ))}
    </div>
  );
}
