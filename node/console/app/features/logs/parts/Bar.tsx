// The bar over the list: the view, the filter, the range, what comes live, and how it is displayed.
import type { ReactNode } from "react";
import { Button, IconButton } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import type { LogsRequest } from "../request";
import type { LogsState } from "../url";
import style from "./Bar.module.css";
import { DisplayMenu } from "./DisplayMenu";
import { ExportMenu } from "./ExportMenu";
import { ViewMenu } from "./ViewMenu";

interface BarProps {
  readonly state: LogsState;
  readonly projectId: string;
  readonly userId: string;
  readonly request: LogsRequest;
  readonly change: (changed: Partial<LogsState>) => void;
  readonly hasFacets: boolean;
  readonly onFacets: () => void;
  readonly filter: ReactNode;
  readonly range: ReactNode;
  readonly live: ReactNode;
  readonly onChooseVersion: () => void;
}

export function Bar(props: BarProps) {
  const { state, projectId, userId, request, change, hasFacets, onFacets, filter, range, live, onChooseVersion } = props;
  return (
    <div className={style["bar"]} role="group" aria-label="What the list shows">
      <IconButton
        icon="filter"
        label={hasFacets ? "Hide the facets" : "Show the facets"}
        aria-pressed={hasFacets}
        onClick={onFacets}
      />
      <ViewMenu {...{ state, projectId, userId, change }} />
      <div className={style["filter"]}>{filter}</div>
      <div className={style["tools"]}>
        {range}
        {live}
        <DisplayMenu {...{ state, change, onChooseVersion }} />
        <ExportMenu organization={state.organization} project={state.project} request={request} />
      </div>
    </div>
  );
}

interface LiveProps {
  readonly isOn: boolean;
  /** Why new rows cannot come; null if they can. */
  readonly obstacle: string | null;
  readonly onToggle: () => void;
}

/** Switches the asking for new rows. */
export function Live({ isOn, obstacle, onToggle }: LiveProps) {
  const isLive = isOn && obstacle === null;
  return (
    <Button
      look="quiet"
      aria-pressed={isLive}
      aria-disabled={obstacle !== null}
      title={obstacle ?? (isLive ? "New rows appear by themselves" : "New rows do not appear")}
      onClick={() => {
        if (obstacle === null) onToggle();
      }}
    >
      <span className={classes(style["icon"], isLive && style["live"], obstacle !== null && style["off"])}>
        <Icon name="radio" />
      </span>
      <span className={classes(style["word"], obstacle !== null && style["off"])}>Live</span>
    </Button>
  );
}

interface NoteProps {
  readonly children: ReactNode;
  readonly action: string;
  readonly onAction: () => void;
}

/** A line that says what is particular about the list, with the way back. */
export function Note({ children, action, onAction }: NoteProps) {
  return (
    <div className={style["note"]} role="note">
      <span>{children}</span>
      <Button look="quiet" onClick={onAction}>
        {action}
      </Button>
    </div>
  );
}
