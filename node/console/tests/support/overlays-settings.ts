// What the sections of the settings open.
import { button, dialog, gridRow, inTurn, item, menu, tab, type Opening, type Row } from "./openings";
import { PLANTED } from "./planted";

const planted = new RegExp(`^${PLANTED}`);
const actions = new RegExp(`^Actions of ${PLANTED}`);

/** Opens Ben, who is found by name: the list may be longer than what is drawn of it. */
const ben: Opening = async (page) => {
  await page.getByRole("searchbox", { name: "Filter the members by name" }).fill("ben");
  await gridRow("Members", /^ben/)(page);
};

export const MEMBERS: readonly Row[] = [
  ["invitation", button("Invite people"), dialog("Invite people")],
  ["member", ben, dialog(/^ben/)],
  ["removal of a member", inTurn(ben, button("Remove")), dialog(/^Remove ben/)],
];

/** What the list of groups or of roles opens, and the page of one of them. */
const named = (what: "group" | "role", list: "Groups" | "Roles"): readonly Row[] => {
  const page = inTurn(gridRow(list, planted), (at) => at.getByRole("heading", { level: 1, name: planted }).waitFor());
  return [
    [`new ${what}`, button(`New ${what}`), dialog(`New ${what}`)],
    [`name of a ${what}`, inTurn(page, button("Rename")), dialog(`Name of the ${what}`)],
    [`deletion of a ${what}`, inTurn(page, button("Delete")), dialog(new RegExp(`^Delete the ${what} `))],
  ];
};

export const GROUPS: readonly Row[] = named("group", "Groups");
export const ROLES: readonly Row[] = named("role", "Roles");

/** Asks what somebody reaches, and opens the first object of the answer. */
const reached: Opening = async (page) => {
  await tab("By person")(page);
  await page.getByRole("combobox", { name: "Person" }).selectOption({ index: 1 });
  await page.getByRole("grid", { name: "What they reach" }).getByRole("row").nth(1).click();
};

export const ACCESS: readonly Row[] = [
  ["grant", button("Grant access"), dialog(/^Grant access to project /)],
  ["access of a person", gridRow("Who may do what", /^ben/), (page) => dialog(/^ben.* on project /)(page).getByRole("list", { name: "Why" })],
  ["access of a group", gridRow("Who may do what", planted), (page) => dialog(planted)(page).getByRole("list", { name: "Why" })],
  ["object that somebody reaches", reached, (page) => dialog(/ on /)(page).getByRole("list", { name: "Why" })],
];

export const KEYS: readonly Row[] = [
  ["new key", button("New key"), dialog("New API key")],
  ["actions of a key", button(/^Actions of /), menu(/^Actions of /)],
  ["deletion of a key", item(/^Actions of /, "Delete"), dialog("Delete this key")],
];

export const TOKENS: readonly Row[] = [
  ["actions of a token", button(/^Actions of /), menu(/^Actions of /)],
  ["deletion of a token", item(/^Actions of /, "Delete"), dialog("Delete this token")],
];

/** What the service tokens open for a program, which alone may make more of them. */
export const TOKENS_OF_A_PROGRAM: readonly Row[] = [["new token", button("New token"), dialog("New service token")]];

/** Shows all fields of the dialog about a secret. */
const allFields: Opening = async (page) => {
  const opened = page.getByRole("dialog", { name: /AI secret$/ });
  await opened.getByRole("button", { name: "Add a model" }).click();
  await opened.getByText("Headers and other metadata").click();
};

export const SECRETS: readonly Row[] = [
  ["new secret", button("New secret"), dialog("New AI secret")],
  ["all fields of a new secret", inTurn(button("New secret"), allFields), (page) => page.getByRole("textbox", { name: "Other metadata" })],
  ["actions of a secret", button(actions), menu(actions)],
  ["test of a secret", item(actions, "Test call"), dialog("Test call")],
  ["details of a secret", item(actions, "Edit"), dialog("Edit this AI secret")],
  ["deletion of a secret", item(actions, "Delete"), dialog("Delete this secret")],
];

export const VARIABLES: readonly Row[] = [
  ["new variable", button("New variable"), dialog("New environment variable")],
  ["actions of a variable", button(actions), menu(actions)],
  ["another value of a variable", item(actions, "Replace the value"), dialog("Replace the value")],
  ["deletion of a variable", item(actions, "Delete"), dialog("Delete this variable")],
];

export const USAGE: readonly Row[] = [["range of the spending", button(/^Range of time/), dialog("Range of time")]];

const BUDGET = new RegExp(`^Actions of the budget of The model ${PLANTED}`);

/** Makes the new budget one of a model, which is typed or chosen. */
const forModel: Opening = (page) => dialog("New budget")(page).getByRole("combobox", { name: "For" }).selectOption("A model").then(() => undefined);

export const BUDGETS: readonly Row[] = [
  ["new budget", button("New budget"), dialog("New budget")],
  ["new budget of a model", inTurn(button("New budget"), forModel), (page) => page.getByRole("combobox", { name: "Name of the model" })],
  ["actions of a budget", button(BUDGET), menu(BUDGET)],
  ["limits of a budget", item(BUDGET, "Edit"), dialog("Edit the budget")],
  ["deletion of a budget", item(BUDGET, "Delete"), dialog("Delete this budget")],
];

const RULE = /^Actions of the rule .*datasets of demo/;

/** What a rule would delete, which is counted after the dialog has opened. */
const counted = (title: string) => (page: Parameters<Opening>[0]) =>
  dialog(title)(page).getByRole("status").filter({ hasText: /would be deleted|No row is that old/ });

/** Enters that rows are kept for no time, and types how many go. */
const short: Opening = async (page) => {
  const opened = dialog("Edit the rule")(page);
  await opened.getByRole("textbox", { name: "Kept for days" }).fill("0");
  const asked = opened.getByText(/^Type \d+ to confirm$/);
  const count = /\d+/.exec((await asked.textContent()) ?? "")?.[0] ?? "";
  await opened.getByRole("textbox", { name: /^Type \d+ to confirm$/ }).fill(count);
  await opened.getByRole("button", { name: "Save" }).click();
};

export const RETENTION: readonly Row[] = [
  ["new rule", button("New rule"), counted("New rule of retention")],
  ["actions of a rule", button(RULE), menu(RULE)],
  ["days of a rule", item(RULE, "Edit"), counted("Edit the rule")],
  ["rule of less than an hour", inTurn(item(RULE, "Edit"), short), dialog("Keep rows for less than an hour?")],
  ["deletion of a rule", item(RULE, "Delete"), dialog("Delete this rule")],
];
