// What can be done in an open trace by a key, in the palette, and in its menu.
import type { Command } from "../../lib/commands";

export interface TraceActions {
  close(): void;
  step(by: 1 | -1): void;
  nextError(by: 1 | -1): void;
  filter(): void;
  find(): void;
  unfoldTo(level: number): void;
  addToDataset(): void;
  comment(): void;
  actions(): void;
  chooseVersion(): void;
  hasList(): boolean;
  /** Whether the past is shown, which nobody changes. */
  isPast(): boolean;
  /** Whether another version can be chosen here. */
  hasVersions(): boolean;
}

const GROUP = "Trace";

export const traceCommands = (actions: TraceActions): readonly Command[] => [
  { id: "trace.next", title: "Next trace", group: GROUP, keys: "J", when: actions.hasList, run: () => actions.step(1) },
  { id: "trace.previous", title: "Previous trace", group: GROUP, keys: "K", when: actions.hasList, run: () => actions.step(-1) },
  { id: "trace.error", title: "Next error", group: GROUP, keys: "e", run: () => actions.nextError(1) },
  { id: "trace.errorBefore", title: "Previous error", group: GROUP, keys: "E", run: () => actions.nextError(-1) },
  { id: "trace.filter", title: "Show only matches, or only errors", group: GROUP, keys: "f", run: actions.filter },
  { id: "trace.find", title: "Find in the trace", group: GROUP, keys: "F", run: actions.find },
  { id: "trace.dataset", title: "Add the span to a dataset", group: GROUP, keys: "d", when: () => !actions.isPast(), run: actions.addToDataset },
  { id: "trace.comment", title: "Score or comment on the span", group: GROUP, keys: "c", run: actions.comment },
  { id: "trace.version", title: "Show an earlier state of the trace", group: GROUP, when: actions.hasVersions, run: actions.chooseVersion },
  { id: "trace.actions", title: "Actions of the trace", group: GROUP, keys: ".", run: actions.actions },
  ...Array.from({ length: 9 }, (_, level): Command => ({
    id: `trace.level${level + 1}`,
    title: `Unfold to level ${level + 1}`,
    group: GROUP,
    keys: String(level + 1),
    run: () => actions.unfoldTo(level + 1),
  })),
];
