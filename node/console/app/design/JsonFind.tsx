// Finds keys and values in a JSON value, and goes from one to the next.
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { announce } from "../lib/store";
import { IconButton } from "./Button";
import style from "./Json.module.css";
import type { Embedded, Step } from "./JsonRows";
import { FOUND_MAX, pathsWith } from "./JsonSearch";

interface JsonFindProps {
  readonly value: unknown;
  /** Texts that are shown as JSON, so that the search looks into them. */
  readonly embedded: Embedded;
  readonly label: string;
  readonly isOpen: boolean;
  readonly onOpen: (isOpen: boolean) => void;
  readonly show: (path: readonly Step[]) => void;
}

/** Least letters that are looked for, so that a first letter does not find everything. */
const LEAST = 2;

export function JsonFind({ value, embedded, label, isOpen, onOpen, show }: JsonFindProps) {
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const found = useMemo(() => (words.length < LEAST ? [] : pathsWith(value, words, embedded)), [value, words, embedded]);
  const go = (to: number): void => {
    const next = found.length === 0 ? 0 : (to + found.length) % found.length;
    const path = found[next];
    setAt(next);
    if (path !== undefined) show(path);
  };
  useEffect(() => {
    if (isOpen) input.current?.focus();
  }, [isOpen]);
  useEffect(() => {
    if (words.length < LEAST) return;
    go(0);
    announce(found.length === 0 ? "Nothing found." : `${found.length} found.`);
  }, [found]);
  if (!isOpen) return <IconButton icon="search" label={`Find in ${label}`} onClick={() => onOpen(true)} />;
  const many = found.length === FOUND_MAX ? `${FOUND_MAX}+` : String(found.length);
  return (
    <span className={style["find"]}>
      <input
        ref={input}
        type="search"
        aria-label={`Find in ${label}`}
        placeholder="Find"
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={(event: KeyboardEvent) => {
          if (event.key === "Enter") go(at + (event.shiftKey ? -1 : 1));
          else if (event.key === "Escape") {
            setWords("");
            onOpen(false);
          } else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      {words.length >= LEAST && (
        <span className={style["count"]}>{found.length === 0 ? "none" : `${at + 1}/${many}`}</span>
      )}
      {found.length > 1 && (
        <>
          <IconButton icon="up" label={`Previous match in ${label}`} onClick={() => go(at - 1)} />
          <IconButton icon="down" label={`Next match in ${label}`} onClick={() => go(at + 1)} />
        </>
      )}
    </span>
  );
}
