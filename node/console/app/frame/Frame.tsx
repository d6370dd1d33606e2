// The frame of every screen: the rail, the top bar, the bars that warn, the screen, and the status line.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "react";
import type { About, Session } from "../api/schema";
import { Dialog } from "../design/Dialog";
import { lazily, readyAll } from "../design/Lazily";
import { classes } from "../design/classes";
import { useCommands } from "../lib/commands";
import { whenIdle } from "../lib/first";
import { preferences } from "../lib/preferences";
import { organizationOf, projectOf, type Place } from "../routes";
import { frameCommands, type Opened } from "./commands";
import style from "./Frame.module.css";
import { Rail } from "./Rail";
import { findOrganization, Screen } from "./Screen";
import { StatusLine } from "./StatusLine";
import { TopBar } from "./TopBar";
import { Warnings } from "./Warnings";

const KeySheet = lazily(async () => (await import("../design/KeySheet")).KeySheet);
const Palette = lazily(async () => (await import("./Palette")).Palette);

/** Which of the frame's dialogs is open. */
const opened = signal<Opened>("none");

const open = (dialog: Opened): void => {
  opened.value = dialog;
};

const close = (): void => open("none");

interface FrameProps {
  readonly place: Place;
  readonly session: Session;
  readonly about: About | undefined;
}

export function Frame({ place, session, about }: FrameProps) {
  const named = organizationOf(place);
  const chosen = findOrganization(session, named) ?? (place.at === "unknown" ? findOrganization(session, "") : null);
  const organization = chosen?.name ?? null;
  const served = about?.served;
  const project = projectOf(place);
  const commands = useMemo(
    () => frameCommands({ organization, project, hasSeveral: session.organizations.length > 1, served, open }),
    [organization, project, session, served],
  );
  useCommands(commands);
  useEffect(() => whenIdle(() => readyAll([KeySheet, Palette])), []);
  const isFolded = preferences.value.railFolded;
  const rail = { place, session, organization, served };
  return (
    <div className={classes(style["frame"], isFolded && style["folded"])}>
      <a className={classes("only-spoken", style["skip"])} href="#screen">
        Skip to the screen
      </a>
      <div className={style["rail"]}>
        <Rail {...rail} isFolded={isFolded} />
      </div>
      <TopBar place={place} session={session} organization={organization} open={open} />
      <Warnings isSecure={about?.isSecure ?? true} />
      <main id="screen" className={style["main"]} tabIndex={-1}>
        <Screen place={place} session={session} served={served} />
      </main>
      <StatusLine />
      {opened.value === "keys" && <KeySheet onClose={close} />}
      {opened.value === "palette" && <Palette session={session} organization={organization} onClose={close} />}
      {opened.value === "rail" && (
        <Dialog title="Assay" form="drawer" onClose={close}>
          <Rail {...rail} isFolded={false} onGo={close} />
        </Dialog>
      )}
    </div>
  );
}
