// What the screens of prompts, playgrounds and reviews open.
import type { Page } from "playwright-core";
import { button, dialog, dialogRegion, inTurn, item, keys, menu, tab, type Opening, type Row } from "./openings";
import { PLANTED } from "./planted";

/** Changes the text of a prompt, and saves nothing. */
const edit: Opening = (page) => page.getByRole("textbox", { name: "Text of message 2" }).fill("Answer briefly.");

/** Opens the menu of a prompt's version, where 0 is the newest. */
const version =
  (index: number): Opening =>
  async (page) => {
    await tab("Versions")(page);
    await page.getByRole("list", { name: "Versions" }).getByRole("listitem").nth(index).getByRole("button").click();
  };

/** Chooses an item of the menu of a prompt's version. */
const ofVersion = (index: number, title: string): Opening =>
  inTurn(version(index), (page) => page.getByRole("menuitem", { name: title }).click());

const differences = (page: Page) => page.getByRole("region", { name: "Differences" });

export const PROMPTS: readonly Row[] = [
  ["new prompt", keys("n"), dialog("New prompt")],
  ["actions of a prompt in the list", button("Actions of Answer"), menu("Actions of Answer")],
  ["details of a prompt in the list", item("Actions of Answer", "Name and description"), dialog("Name and description of Answer")],
  ["deletion of a prompt in the list", item("Actions of Answer", "Delete"), dialog("Delete Answer?")],
];

export const PROMPT: readonly Row[] = [
  ["actions of a prompt", button("Actions of Answer"), menu("Actions of Answer")],
  ["actions of an edited prompt", inTurn(edit, button("Actions of Answer")), menu("Actions of Answer")],
  ["details of a prompt", item("Actions of Answer", "Name and description"), dialog("Name and description of Answer")],
  ["deletion of a prompt", item("Actions of Answer", "Delete"), dialog("Delete Answer?")],
  [
    "models of a prompt",
    (page) => page.getByRole("combobox", { name: "Model" }).fill(""),
    (page) => page.getByRole("listbox", { name: "Model" }),
  ],
  ["actions of a message", button("Actions of message 2"), menu("Actions of message 2")],
  ["new version", inTurn(edit, keys("Control+s")), dialogRegion("Save a version", "Differences")],
  [
    "leaving an edited prompt",
    inTurn(edit, (page) => page.getByRole("link", { name: "Prompts", exact: true }).last().click()),
    dialog("Leave with unsaved edits?"),
  ],
  ["versions of a prompt", tab("Versions"), (page) => page.getByRole("list", { name: "Versions" })],
  ["actions of a version", version(1), menu(/^Actions of the version of/)],
  ["difference of two versions", ofVersion(0, "Compare with the one before"), differences],
  ["restoring a version", ofVersion(1, "Restore as a new version"), dialogRegion("Restore as a new version?", "Differences")],
  ["new environment", ofVersion(0, "New environment"), dialog("New environment")],
  ["version for an environment", ofVersion(0, "Put production on it"), dialogRegion(/^Put production on the version of/, "Differences")],
  ["no version for an environment", ofVersion(1, "Take production away"), dialogRegion("Take the version of production away?", "Differences")],
  ["code of a prompt", tab("Use it"), (page) => page.getByRole("tabpanel", { name: "Use it" })],
];

export const PLAYGROUNDS: readonly Row[] = [
  ["new playground", keys("n"), dialog("New playground")],
  ["actions of a playground in the list", button("Actions of PG1"), menu("Actions of PG1")],
  ["name of a playground in the list", item("Actions of PG1", "Rename"), dialog("Rename the playground")],
  ["deletion of a playground in the list", item("Actions of PG1", "Delete"), dialog("Delete the playground")],
];

const COLUMN = /^Actions of Answer/;

export const PLAYGROUND: readonly Row[] = [
  ["prompts for a playground", keys("n"), dialog("Add prompts")],
  ["models for all prompts", keys("m"), dialog("Add models to all prompts")],
  ["models for a prompt", item(COLUMN, "Add models to this prompt"), dialog(/^Add models to Answer/)],
  ["rows of a playground", keys("i"), dialog("Rows")],
  ["scorers of a playground", keys("c"), dialog("Scorers")],
  ["columns as experiments", keys("e"), dialog("Save as experiments")],
  ["column as an experiment", item(COLUMN, "As an experiment"), dialog("Save as an experiment")],
  ["column as a version", button("Save as a version"), dialog("Save as a version of a prompt")],
  ["actions of a column", button(COLUMN), menu(COLUMN)],
  ["actions of a playground", button("More"), menu("More")],
  ["name of a playground", item("More", "Rename"), dialog("Rename the playground")],
  ["deletion of a playground", item("More", "Delete the playground"), dialog("Delete the playground")],
];

const QUEUE = new RegExp(`^Actions of ${PLANTED}`);

/** Goes to the filter in the dialog of a new queue, which offers conditions. */
const filterOfQueue: Opening = inTurn(keys("n"), (page) =>
  dialog("New queue")(page).getByRole("combobox", { name: "Filter", exact: true }).click(),
);

const queueDetails: Opening = item(QUEUE, "Name and filter");

/** The conditions of a queue, which its dialog shows once it has read the fields of the rows. */
const conditions = (page: Page) =>
  dialog(new RegExp(`^Queue ${PLANTED}`))(page).getByRole("list", { name: "Conditions" });

/** Changes a condition in the dialog of a queue. */
const condition: Opening = (page) => conditions(page).getByRole("button", { name: "error is present", exact: true }).click();

export const REVIEW: readonly Row[] = [
  ["new queue", keys("n"), dialog("New queue")],
  ["filter of a queue", filterOfQueue, (page) => page.getByRole("listbox", { name: "Filter" })],
  ["actions of a queue", button(QUEUE), menu(QUEUE)],
  ["details of a queue", queueDetails, conditions],
  ["condition of a queue", inTurn(queueDetails, condition), dialog("Change error is present")],
  ["deletion of a queue", item(QUEUE, "Delete"), dialog(/^Delete the queue /)],
];

export const REVIEW_OF_A_ROW: readonly Row[] = [
  ["agreement of the reviewers", button("Agreement"), dialogRegion("Agreement of the reviewers", "Agreement by score")],
  ["trace of a row under review", button("Whole trace"), (page) => page.getByRole("treegrid")],
];

const firstScore: Opening = (page) =>
  page.getByRole("list", { name: "Scores" }).getByRole("listitem").first().getByRole("button").first().click();

/** Shows who gives a score and where, in its dialog. */
const whoGives: Opening = (page) => page.getByRole("dialog").getByText("Who gives it, and where").click();

export const SCORES: readonly Row[] = [
  ["new score", keys("n"), dialog("New score")],
  ["reviewers of a score", inTurn(keys("n"), whoGives), (page) => page.getByRole("group", { name: "People" })],
  ["details of a score", firstScore, dialog(/^Score /)],
  ["deletion of a score", button(/^Delete /), dialog(/^Delete the score /)],
];

