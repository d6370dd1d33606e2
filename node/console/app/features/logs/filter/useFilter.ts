// The filter as chips: read from its text, and written back to it.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { chipsOf, type Chip } from "../../../btql";
import type { FilterBarProps, HowToGo } from "./props";
import { parseQuery, rememberChips, type Fault } from "./queries";

export interface Filter {
  readonly chips: readonly Chip[];
  /** What is wrong with the text of the filter, if it is not well-formed. */
  readonly fault: Fault | null;
  /** Whether the text is being read, so that the chips may be those of the text before. */
  readonly isReading: boolean;
  readonly set: (chips: readonly Chip[], how?: HowToGo) => void;
}

/** A text that nobody has read: one chip, which is changed as text. */
const unread = (text: string): readonly Chip[] => [{ text, tree: { op: "btql", btql: text }, condition: null }];

export function useFilter({ scope, onChange }: FilterBarProps): Filter {
  const { organization, filter } = scope;
  const { data, error, isPlaceholderData, isPending } = useQuery(parseQuery(organization, filter));
  const isEmpty = filter.trim() === "";
  const chips = useMemo(() => {
    if (isEmpty) return [];
    if (data?.kind === "read") return chipsOf(data.tree, data.text);
    return data?.kind === "fault" || error !== null ? unread(filter) : [];
  }, [data, error, filter, isEmpty]);
  return {
    chips,
    fault: !isEmpty && !isPlaceholderData && data?.kind === "fault" ? data.fault : null,
    isReading: !isEmpty && (isPlaceholderData || isPending) && error === null,
    set: (next, how = "push") => {
      const text = rememberChips(next);
      if (text !== filter) onChange(text, how);
    },
  };
}
