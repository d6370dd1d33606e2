// The state of a field with a list of options: which option is the current one.

export interface ComboOption {
  readonly id: string;
  readonly label: string;
  /** A word beside the label, such as a type or a count. */
  readonly detail?: string;
  /** Present for options of which several can be chosen. */
  readonly isChosen?: boolean;
  /** The heading of a group that starts with this option. */
  readonly heading?: string;
}

/** The index of the option that is `by` away. The list is a ring with a place before its first option: -1. */
export function movedOption(count: number, from: number, by: number): number {
  if (count === 0) return -1;
  const places = count + 1;
  return ((((from + 1 + by) % places) + places) % places) - 1;
}

/** The current option after the list has changed: the same one if it is still there. */
export function keptOption(options: readonly ComboOption[], id: string | null, whenGone: number): number {
  const index = id === null ? -1 : options.findIndex((option) => option.id === id);
  return index >= 0 ? index : Math.min(whenGone, options.length - 1);
}
