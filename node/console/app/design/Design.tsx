// The page that shows every part of the design, in development only.
import { useState, type ReactNode } from "react";
import { delta, duration, money, score, shortCount } from "../lib/numbers";
import { Button, ButtonLink, IconButton } from "./Button";
import { Chip } from "./Chip";
import { Code } from "./Code";
import { Copy } from "./Copy";
import style from "./Design.module.css";
import { Dialog, DialogActions } from "./Dialog";
import { Empty } from "./Empty";
import { ErrorState } from "./ErrorState";
import { Field } from "./Field";
import { Kbd } from "./Kbd";
import { Menu } from "./Menu";
import { Skeleton } from "./Skeleton";
import { toast } from "./Toast";

const COLOURS = ["bg", "surface", "raised", "text", "text-2", "text-3", "accent", "good", "bad", "warn", "control", "line"];
const SIZES = ["t11", "t12", "t13", "t14", "t16", "t20", "t28"];
const SNIPPETS = [
  { id: "shell", title: "Shell", before: "Run this.", code: "assay serve" },
  { id: "python", title: "Python", before: "Run this file.", code: "print('hello')" },
] as const;

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className={style["part"]}>
      <h2>{title}</h2>
      <div className={style["shown"]}>{children}</div>
    </section>
  );
}

function Tokens() {
  return (
    <>
      <Part title="Colours">
        {COLOURS.map((name) => (
          <span key={name} className={style["colour"]}>
            <span className={style["patch"]} style={{ background: `var(--${name})` }} />
            {name}
          </span>
        ))}
      </Part>
      <Part title="Sizes of type">
        {SIZES.map((size) => (
          <span key={size} style={{ fontSize: `var(--${size})`, lineHeight: 1.4 }}>
            {size}
          </span>
        ))}
      </Part>
      <Part title="Numbers">
        <span>{shortCount(1234)}</span>
        <span>{shortCount(12_345)}</span>
        <span>{duration(840)}</span>
        <span>{duration(134_000)}</span>
        <span>{money(0.0008)}</span>
        <span>{score(0.84)}</span>
        <span>{delta(-0.01)}</span>
      </Part>
    </>
  );
}

function Controls({ onOpen }: { readonly onOpen: () => void }) {
  return (
    <>
      <Part title="Buttons">
        <Button>Plain</Button>
        <Button look="primary">Primary</Button>
        <Button look="quiet">Quiet</Button>
        <Button icon="plus">With an icon</Button>
        <Button disabled>Disabled</Button>
        <IconButton icon="more" label="More" />
        <ButtonLink href="/app">A link</ButtonLink>
        <Copy text="text" what="the text" />
        <Copy text="text" what="the text" title="Copy" />
      </Part>
      <Part title="Chips and keys">
        <Chip>prod</Chip>
        <Chip tone="good">up</Chip>
        <Chip tone="warn">late</Chip>
        <Chip tone="bad">error</Chip>
        <Kbd keys="mod+k" />
        <Kbd keys="g h" />
      </Part>
      <Part title="What opens">
        <Button onClick={onOpen}>Dialog</Button>
        <Menu label="A menu" button="Menu" items={[{ id: "one", title: "One", run: () => toast("One was chosen.") }]} />
        <Button onClick={() => toast("This went well.")}>Notice</Button>
        <Button onClick={() => toast("This failed.", true)}>Failure</Button>
      </Part>
      <Part title="Fields">
        <Field label="Name" hint="Say what it is." />
        <Field label="Name" fault="Enter a name first." />
      </Part>
    </>
  );
}

const PROBLEM = {
  title: "Too many requests",
  text: "The limit of this key is reached.",
  code: "TooManyRequestsError",
  requestId: "85a8d47384204dfeb2072020331a08b3",
  wayOut: "retry",
} as const;

export function DesignPage() {
  const [isOpen, setOpen] = useState(false);
  const [language, setLanguage] = useState<"shell" | "python">("shell");
  const [retryAt] = useState(() => Date.now() + 20_000);
  return (
    <div className={style["page"]}>
      <h1 tabIndex={-1}>Design</h1>
      <Tokens />
      <Controls onOpen={() => setOpen(true)} />
      <Part title="Code">
        <Code label="Language" snippets={SNIPPETS} chosen={language} onChoose={setLanguage} />
      </Part>
      <Part title="States">
        <Empty action={<Button>Make one</Button>}>There is nothing yet.</Empty>
        <Skeleton lines={[[24, 12], [18, 12]]} />
        <ErrorState problem={{ ...PROBLEM, retryAt }} onRetry={() => undefined} onSignIn={() => undefined} />
      </Part>
      {isOpen && (
        <Dialog title="A dialog" onClose={() => setOpen(false)}>
          <p>It holds the focus and gives it back.</p>
          <DialogActions>
            <Button onClick={() => setOpen(false)}>Close</Button>
          </DialogActions>
        </Dialog>
      )}
    </div>
  );
}
