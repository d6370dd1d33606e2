// What can be done in the query editor.
import type { Command } from "../../lib/commands";

export interface QueryActions {
  run(): void;
  stop(): void;
  isRunning(): boolean;
  open(): void;
  closeTab(): void;
  focusEditor(): void;
  save(): void;
  more(): void;
  hasMore(): boolean;
}

const GROUP = "Query";

export const queryCommands = (actions: QueryActions): readonly Command[] => [
  { id: "query.run", title: "Run the query", group: GROUP, keys: "mod+Enter", run: actions.run },
  {
    id: "query.stop",
    title: "Stop the query",
    group: GROUP,
    keys: "Escape",
    when: actions.isRunning,
    run: actions.stop,
  },
  { id: "query.edit", title: "Edit the query", group: GROUP, keys: "/", run: actions.focusEditor },
  { id: "query.new", title: "New tab", group: GROUP, keys: "n", run: actions.open },
  { id: "query.close", title: "Close the tab", group: GROUP, run: actions.closeTab },
  { id: "query.save", title: "Save the query", group: GROUP, keys: "mod+s", run: actions.save },
  { id: "query.more", title: "Next page", group: GROUP, keys: "m", when: actions.hasMore, run: actions.more },
];
