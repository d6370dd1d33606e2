// The state of the page of one prompt or function: the version that is shown, and the edits of the newest.
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Pinned, PromptRecord, PromptVersion } from "../../api/prompts";
import type { PromptFields } from "../../design/MessageEditorLogic";
import { navigate } from "../../lib/router";
import { isSame } from "./draft";
import { pinnedQuery, versionQuery, versionsQuery, type ProjectPlace } from "./queries";
import { promptsAddress, type PromptsState } from "./url";

/** Edits that are not saved, and the version that they change. */
export interface Edits {
  readonly base: PromptRecord;
  readonly data: PromptFields;
}

export interface Desk {
  readonly state: PromptsState;
  readonly place: ProjectPlace;
  readonly userId: string;
  readonly newest: PromptRecord;
  /** The version that the address asks for, as it is read. */
  readonly asked: UseQueryResult<PromptRecord>;
  /** The version that is shown; undefined while it is read. */
  readonly shown: PromptRecord | undefined;
  readonly isNewest: boolean;
  /** The content that is shown, with the edits if there are some. */
  readonly data: PromptFields;
  readonly edits: Edits | null;
  /** Whether somebody saved a version since the edits began. */
  readonly isStale: boolean;
  readonly versions: readonly PromptVersion[];
  readonly versionsRead: UseQueryResult<readonly PromptVersion[]>;
  readonly pinned: readonly Pinned[];
  readonly isPinnedRead: boolean;
  change(data: PromptFields): void;
  setEdits(edits: Edits | null): void;
  hrefOf(change: Partial<PromptsState>): string;
  /** Shows something else on this page. */
  show(change: Partial<PromptsState>): void;
}

export function useDesk(state: PromptsState, place: ProjectPlace, userId: string, newest: PromptRecord): Desk {
  const versionsRead = useQuery(versionsQuery(place, newest.id));
  const pinnedRead = useQuery(pinnedQuery(place, newest.id));
  const pinned = useMemo(() => [...(pinnedRead.data ?? [])].sort((one, other) => one.slug.localeCompare(other.slug)), [pinnedRead.data]);
  const [edits, setEdits] = useState<Edits | null>(null);
  const ofEnvironment = pinned.find(({ slug }) => slug === state.environment)?.version ?? "";
  const version = state.version === "" ? ofEnvironment : state.version;
  const isNewest = version === "" || version === newest.version;
  const asked = useQuery({ ...versionQuery(place, newest.id, version), enabled: !isNewest });
  const shown = isNewest ? newest : asked.data;
  const hrefOf = (change: Partial<PromptsState>): string => promptsAddress({ ...state, ...change });
  return {
    state,
    place,
    userId,
    newest,
    asked,
    shown,
    isNewest,
    data: isNewest ? (edits?.data ?? newest.data) : (shown?.data ?? {}),
    edits,
    isStale: edits !== null && edits.base.version !== newest.version,
    versions: versionsRead.data ?? [],
    versionsRead,
    pinned,
    isPinnedRead: pinnedRead.data !== undefined,
    change: (data) => {
      const base = edits?.base ?? newest;
      setEdits(isSame(data, base.data) ? null : { base, data });
    },
    setEdits,
    hrefOf,
    show: (change) => navigate(hrefOf(change), "replace"),
  };
}
