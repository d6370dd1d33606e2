// What can be done in the review of a queue.
import type { Command } from "../../lib/commands";

export interface ReviewActions {
  pick(digit: number): void;
  move(by: 1 | -1): void;
  done(): void;
  skip(): void;
  back(): void;
  toggleTrace(): void;
}

const group = "Review";

export const reviewCommands = (actions: ReviewActions): readonly Command[] => [
  { id: "review.done", title: "Done and next", group, keys: "mod+Enter", run: actions.done },
  { id: "review.skip", title: "Skip the row", group, keys: "s", run: actions.skip },
  { id: "review.back", title: "Back to the row before", group, keys: "z", run: actions.back },
  { id: "review.trace", title: "Show or hide the whole trace", group, keys: "o", run: actions.toggleTrace },
  { id: "review.down", title: "Next score", group, keys: "ArrowDown", run: () => actions.move(1) },
  { id: "review.up", title: "Previous score", group, keys: "ArrowUp", run: () => actions.move(-1) },
  ...Array.from({ length: 9 }, (_, index): Command => ({
    id: `review.pick${index + 1}`,
    title: `Choose option ${index + 1}`,
    group,
    keys: String(index + 1),
    run: () => actions.pick(index + 1),
  })),
];
