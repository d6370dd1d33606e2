// The page of one prompt or function: its head, its content, and beside it runs, versions and code.
import { useEffect, useMemo, useRef, useState, type RefObject } from "react";
import type { PromptRecord } from "../../../api/prompts";
import { Button } from "../../../design/Button";
import { Chip } from "../../../design/Chip";
import { Icon } from "../../../design/Icon";
import { Menu } from "../../../design/Menu";
import { Tabs } from "../../../design/Tabs";
import { toast } from "../../../design/Toast";
import { copyText } from "../../../lib/clipboard";
import { useCommands, useLatest } from "../../../lib/commands";
import { navigate } from "../../../lib/router";
import { pageCommands, type PageActions } from "../commands";
import { typeInWords } from "../listing";
import type { Opened } from "../opened";
import type { ProjectPlace } from "../queries";
import { PANELS, promptsAddress, promptsDefaults, type PromptsState } from "../url";
import { useDesk, type Desk } from "../useDesk";
import { Content } from "./Content";
import { Dialogs } from "./Dialogs";
import { Leaving } from "./Leaving";
import style from "./parts.module.css";
import { RunPanel, useTest, type Test } from "./RunPanel";
import { UsePanel } from "./UsePanel";
import { Versions } from "./Versions";
import { VersionTime } from "./Words";

async function copied(text: string, what: string): Promise<void> {
  const isDone = await copyText(text);
  toast(isDone ? `The ${what} is copied.` : "The browser refused to copy.", !isDone);
}

interface PartProps {
  readonly desk: Desk;
  readonly onOpen: (opened: Opened) => void;
}

function Head({ desk, onOpen, onSave }: PartProps & { readonly onSave: () => void }) {
  const { newest, state, pinned, edits } = desk;
  const list = promptsAddress(promptsDefaults(state.kind, state.organization, state.project));
  return (
    <header className={style["head"]}>
      <div className={style["title"]}>
        <a href={list}>{state.kind === "prompts" ? "Prompts" : "Functions"}</a>
        <span aria-hidden="true">/</span>
        <h1 tabIndex={-1} title={newest.description || newest.name}>{newest.name}</h1>
        <code>{newest.slug}</code>
      </div>
      <div className={style["tools"]}>
        <span className={style["chips"]}>
          {state.kind === "functions" && <Chip>{typeInWords(newest)}</Chip>}
          {pinned.map(({ slug }) => (
            <a key={slug} href={desk.hrefOf({ environment: slug, version: "", compare: "" })} title={`Show the version of ${slug}`}>
              <Chip tone={slug === "production" ? "good" : "none"}>{slug}</Chip>
            </a>
          ))}
        </span>
        {edits !== null && <Chip tone="warn">edited</Chip>}
        {newest.kind === "prompt" && (
          <Button look={edits === null ? "plain" : "primary"} title="Save a version (ctrl S)" disabled={edits === null} onClick={onSave}>
            Save a version
          </Button>
        )}
        <Menu
          label={`Actions of ${newest.name}`}
          isAlone
          button={<Icon name="more" />}
          items={[
            { id: "details", title: "Name and description", run: () => onOpen({ what: "details" }) },
            ...(edits === null ? [] : [
              { id: "changes", title: "Show the edits", run: () => desk.show({ version: "", environment: "", compare: edits.base.version }) },
              { id: "discard", title: "Discard the edits", run: () => desk.setEdits(null) },
            ]),
            { id: "id", title: "Copy the id", run: () => void copied(newest.id, "id") },
            { id: "delete", title: "Delete", run: () => onOpen({ what: "delete" }) },
          ]}
        />
      </div>
    </header>
  );
}

/** Says that an older version is shown, or that somebody else saved one. */
function Bands({ desk, onOpen }: PartProps) {
  const { shown, isNewest, isStale, newest, state } = desk;
  return (
    <>
      {isStale && (
        <div className={style["band"]} role="status">
          <span>Somebody else saved a version while you edited.</span>
          <Button onClick={() => desk.show({ version: "", environment: "", compare: newest.version })}>Show the difference</Button>
        </div>
      )}
      {!isNewest && shown !== undefined && state.compare === "" && (
        <div className={style["band"]}>
          <span>
            The version of <VersionTime version={shown.version} />
            {state.environment === "" ? "" : `, which ${state.environment} uses`}. It is read only.
          </span>
          <Button onClick={() => onOpen({ what: "restore", version: shown.version })}>Restore as a new version</Button>
          <Button onClick={() => desk.show({ version: "", environment: "", compare: shown.version })}>Compare with the newest</Button>
          <Button onClick={() => desk.show({ version: "", environment: "" })}>Show the newest</Button>
        </div>
      )}
    </>
  );
}

function Side({ desk, test, onOpen }: PartProps & { readonly test: Test }) {
  const isPrompt = desk.newest.kind === "prompt";
  const titles = { run: "Test run", versions: "Versions", use: "Use it" } as const;
  const panels = PANELS.filter((panel) => panel !== "run" || isPrompt);
  const chosen = panels.find((panel) => panel === desk.state.panel) ?? "versions";
  return (
    <Tabs
      label="Runs, versions and code"
      tabs={panels.map((panel) => ({ id: panel, title: titles[panel] }))}
      chosen={chosen}
      onChoose={(id) => desk.show({ panel: panels.find((panel) => panel === id) ?? "versions" })}
    >
      {chosen === "run" && <RunPanel {...{ desk, test }} />}
      {chosen === "versions" && <Versions {...{ desk, onOpen }} />}
      {chosen === "use" && <UsePanel desk={desk} input={test.input} />}
    </Tabs>
  );
}

/** Names the object in the title of the page, as the frame knows only the screen. */
function useTitle(name: string): void {
  useEffect(() => {
    const before = document.title;
    document.title = `${name} · ${before}`;
    return () => {
      if (document.title === `${name} · ${before}`) document.title = before;
    };
  }, [name]);
}

/** Whether the fields can be taken; the first that cannot is focused. */
function isValid(content: RefObject<HTMLElement | null>): boolean {
  const wrong = content.current?.querySelector<HTMLElement>('[aria-invalid="true"]') ?? null;
  if (wrong === null) return true;
  wrong.focus();
  toast("Correct the marked field first.", true);
  return false;
}

function usePageCommands(desk: Desk, test: Test, save: () => void): void {
  const isPrompt = desk.newest.kind === "prompt";
  const versions = desk.versions.map(({ version }) => version);
  const at = versions.indexOf(desk.shown?.version ?? "");
  const actions: PageActions = {
    save: useLatest(save),
    run: useLatest(() => {
      desk.show({ panel: "run" });
      test.begin();
    }),
    older: useLatest((by: number) => {
      const version = versions[at + by];
      if (at >= 0 && version !== undefined) desk.show({ version: version === desk.newest.version ? "" : version, environment: "" });
    }),
    compare: useLatest(() => desk.show({ compare: desk.state.compare === "" ? (versions[at + 1] ?? "") : "" })),
    isEditable: () => isPrompt,
    isRunnable: () => isPrompt,
  };
  const group = isPrompt ? "Prompt" : "Function";
  useCommands(useMemo(() => pageCommands(actions, group), [isPrompt]));
}

interface PageProps {
  readonly state: PromptsState;
  readonly place: ProjectPlace;
  readonly userId: string;
  readonly record: PromptRecord;
}

export function Page({ state, place, userId, record }: PageProps) {
  const desk = useDesk(state, place, userId, record);
  const test = useTest(desk);
  const [opened, setOpened] = useState<Opened>({ what: "none" });
  const content = useRef<HTMLDivElement>(null);
  const save = (): void => {
    if (desk.edits !== null && isValid(content)) setOpened({ what: "save" });
  };
  useTitle(record.name);
  usePageCommands(desk, test, save);
  const leave = (slug: string): void => navigate(promptsAddress(promptsDefaults(state.kind, state.organization, state.project, slug)), "replace");
  return (
    <div className={style["page"]}>
      <Head desk={desk} onOpen={setOpened} onSave={save} />
      <Bands desk={desk} onOpen={setOpened} />
      <div className={style["columns"]}>
        <div ref={content} className={style["main"]}>
          <Content desk={desk} />
        </div>
        <aside className={style["side"]} aria-label="Runs, versions and code">
          <Side {...{ desk, test }} onOpen={setOpened} />
        </aside>
      </div>
      <Dialogs {...{ desk, opened, leave }} onOpen={setOpened} />
      <Leaving desk={desk} />
    </div>
  );
}
