// The palette: type to go somewhere or to do something.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { projectsQuery } from "../api/queries";
import type { Session } from "../api/schema";
import { classes } from "../design/classes";
import { Dialog } from "../design/Dialog";
import { Icon } from "../design/Icon";
import { Kbd } from "../design/Kbd";
import { commands, isPossible } from "../lib/commands";
import { useLinks } from "../lib/links";
import { navigate } from "../lib/router";
import { moved } from "../lib/store";
import style from "./Palette.module.css";
import { ranked, type Entry } from "./ranking";

const LIMIT = 50;

/** Everything that can be gone to or done: commands, organizations, and the projects of the organization. */
function useEntries(session: Session, organization: string | null): readonly Entry[] {
  const links = useLinks();
  const projects = useQuery({ ...projectsQuery(organization ?? ""), enabled: organization !== null }).data?.projects;
  const known = commands.value;
  return useMemo(() => {
    const others = session.organizations.length > 1 ? session.organizations : [];
    return [
      ...known.filter((command) => isPossible(command) && command.id !== "palette"),
      ...(organization === null ? [] : (projects ?? [])).map((project) => ({
        id: `project.${project.id}`,
        title: project.name,
        group: "Projects by name",
        run: () => navigate(links.logs(organization ?? "", project.name), "push"),
      })),
      ...others.map((one) => ({
        id: `organization.${one.id}`,
        title: one.name,
        group: "Organizations",
        run: () => navigate(links.home(one.name), "push"),
      })),
    ];
  }, [known, projects, session, organization, links]);
}

interface OptionProps {
  readonly entry: Entry;
  readonly id: string;
  readonly isCurrent: boolean;
  readonly onRun: () => void;
  readonly onPoint: () => void;
}

function Option({ entry, id, isCurrent, onRun, onPoint }: OptionProps) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isCurrent) element.current?.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);
  return (
    <li
      ref={element}
      id={id}
      role="option"
      aria-selected={isCurrent}
      className={classes(style["option"], isCurrent && style["current"])}
      onClick={onRun}
      onPointerMove={onPoint}
    >
      <span className={style["title"]}>{entry.title}</span>
      <span className={style["group"]}>{entry.group}</span>
      {entry.keys !== undefined && <Kbd keys={entry.keys} />}
    </li>
  );
}

interface TypeHereProps {
  readonly listId: string;
  readonly activeId: string | undefined;
  readonly typed: string;
  readonly onType: (text: string) => void;
  readonly onKeyDown: (event: KeyboardEvent<HTMLElement>) => void;
}

function TypeHere({ listId, activeId, typed, onType, onKeyDown }: TypeHereProps) {
  return (
    <div className={style["field"]}>
      <Icon name="search" />
      <input
        className={style["input"]}
        role="combobox"
        aria-label="Go to or do"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={activeId}
        aria-autocomplete="list"
        placeholder="Go to or do"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        value={typed}
        onChange={(event) => onType(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

interface PaletteProps {
  readonly session: Session;
  readonly organization: string | null;
  readonly onClose: () => void;
}

export function Palette({ session, organization, onClose }: PaletteProps) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const listId = useId();
  const shown = ranked(useEntries(session, organization), typed, LIMIT);
  const current = shown.find((entry) => entry.id === chosen) ?? shown[0];
  const optionId = (entry: Entry): string => `${listId}-${entry.id}`;
  const run = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    window.setTimeout(entry.run);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const isToggle = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    if (by !== 0) setChosen(moved(shown.map((entry) => entry.id), current?.id ?? null, by));
    else if (event.key === "Enter") run(current);
    else if (isToggle) onClose();
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to or do" form="bare" onClose={onClose}>
      <TypeHere
        listId={listId}
        activeId={current === undefined ? undefined : optionId(current)}
        typed={typed}
        onKeyDown={onKeyDown}
        onType={(text) => {
          setTyped(text);
          setChosen(null);
        }}
      />
      <ul id={listId} role="listbox" aria-label="What fits" className={style["list"]}>
        {shown.map((entry) => (
          <Option
            key={entry.id}
            entry={entry}
            id={optionId(entry)}
            isCurrent={entry === current}
            onRun={() => run(entry)}
            onPoint={() => setChosen(entry.id)}
          />
        ))}
      </ul>
      {shown.length === 0 && <p className={style["nothing"]}>Nothing has this name.</p>}
    </Dialog>
  );
}
