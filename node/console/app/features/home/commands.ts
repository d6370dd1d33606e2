// What can be done on the home screen.
import type { Command } from "../../lib/commands";

export interface HomeActions {
  newProject(): void;
  focusFilter(): void;
  move(by: number): void;
  openActions(): void;
  hasRow(): boolean;
}

export const homeCommands = (actions: HomeActions): readonly Command[] => [
  { id: "home.new", title: "New project", group: "Projects", keys: "n", run: actions.newProject },
  { id: "home.filter", title: "Filter the projects", group: "Projects", keys: "/", run: actions.focusFilter },
  { id: "home.down", title: "Next project", group: "Projects", keys: "j", run: () => actions.move(1) },
  { id: "home.up", title: "Previous project", group: "Projects", keys: "k", run: () => actions.move(-1) },
  {
    id: "home.actions",
    title: "Actions of the project",
    group: "Projects",
    keys: ".",
    when: actions.hasRow,
    run: actions.openActions,
  },
];
