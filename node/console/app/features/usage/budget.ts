// Gateway budgets: their form, their words, and what of their limits is used.
import { isRecord, record, text, textOrNull, type Fields } from "../../api/narrow";
import { numberOrNull } from "../../api/usage";
import { exactCount, money } from "../../lib/numbers";

export const SCOPES = ["org", "project", "user", "service_account", "api_key", "secret", "model"] as const;
export const WINDOWS = ["minute", "hour", "day", "week", "month", "total"] as const;
export const LIMITS = ["usd", "tokens", "requests", "concurrent"] as const;

export type ScopeType = (typeof SCOPES)[number];
export type BudgetWindow = (typeof WINDOWS)[number];
export type Limit = (typeof LIMITS)[number];
export type Limits = Readonly<Record<Limit, number | null>>;

export interface Budget {
  readonly id: string;
  readonly scope: { readonly type: ScopeType; readonly id: string };
  readonly window: BudgetWindow;
  readonly limits: Limits;
  /** Whether calls beyond a limit are refused, and not only reported. */
  readonly isStrict: boolean;
  readonly allowUnpriced: boolean;
}

export interface Used {
  readonly limit: number | null;
  readonly spent: number;
  readonly reserved: number;
  readonly remaining: number | null;
}

export interface BudgetUsage {
  readonly isExceeded: boolean;
  /** When the window ends, as ISO text; null for a budget in total. */
  readonly ends: string | null;
  readonly used: Readonly<Record<Limit, Used>>;
}

export const SCOPE_NAMES: Readonly<Record<ScopeType, string>> = {
  org: "The whole organization",
  project: "A project",
  user: "A person",
  service_account: "A service account",
  api_key: "A key or token",
  secret: "An AI secret",
  model: "A model",
};

export const WINDOW_NAMES: Readonly<Record<BudgetWindow, string>> = {
  minute: "each minute",
  hour: "each hour",
  day: "each day",
  week: "each week",
  month: "each month",
  total: "in total",
};

export const LIMIT_NAMES: Readonly<Record<Limit, string>> = {
  usd: "Cost in dollars",
  tokens: "Tokens",
  requests: "Calls",
  concurrent: "Calls at once",
};

const one = <Word extends string>(words: readonly Word[], value: unknown, otherwise: Word): Word =>
  words.find((word) => word === value) ?? otherwise;

export function readBudget(value: unknown): Budget {
  const budget = record(value, "gateway_budget");
  const scope = record(budget["scope"], "scope");
  const limit = (name: Limit): number | null => numberOrNull(budget, `limit_${name}`);
  return {
    id: text(budget, "id"),
    scope: { type: one(SCOPES, scope["type"], "org"), id: text(scope, "id") },
    window: one(WINDOWS, budget["window"], "total"),
    limits: { usd: limit("usd"), tokens: limit("tokens"), requests: limit("requests"), concurrent: limit("concurrent") },
    isStrict: budget["action"] !== "alert",
    allowUnpriced: budget["allow_unpriced"] === true,
  };
}

function readUsed(value: unknown): Used {
  const used: Fields = isRecord(value) ? value : {};
  return {
    limit: numberOrNull(used, "limit"),
    spent: numberOrNull(used, "spent") ?? numberOrNull(used, "running") ?? 0,
    reserved: numberOrNull(used, "reserved") ?? 0,
    remaining: numberOrNull(used, "remaining"),
  };
}

export function readBudgetUsage(value: unknown): BudgetUsage {
  const usage = record(value, "usage");
  return {
    isExceeded: usage["exceeded"] === true,
    ends: textOrNull(usage, "window_end"),
    used: {
      usd: readUsed(usage["usd"]),
      tokens: readUsed(usage["tokens"]),
      requests: readUsed(usage["requests"]),
      concurrent: readUsed(usage["concurrent"]),
    },
  };
}

/** What a budget is about: `The project demo`. `name` is the name of its object, or null if that is gone. */
export function scopeText({ type, id }: Budget["scope"], name: string | null): string {
  const known = name ?? id;
  switch (type) {
    case "org":
      return SCOPE_NAMES.org;
    case "project":
      return `The project ${known}`;
    case "user":
      return known;
    case "service_account":
      return `The service account ${known}`;
    case "api_key":
      return `The key ${known}`;
    case "secret":
      return `The AI secret ${known}`;
    case "model":
      return `The model ${id}`;
  }
}

const amountText = (limit: Limit, amount: number): string => (limit === "usd" ? money(amount) : exactCount(amount));

/** How much of a limit is used: `$1.2 of $5 · $0.1 reserved · $3.7 left`. */
export function usedText(limit: Limit, { spent, reserved, remaining }: Used, allowed: number): string {
  const write = (amount: number): string => amountText(limit, amount);
  if (limit === "concurrent") return `${write(spent)} of ${write(allowed)} running`;
  const parts = [`${write(spent)} of ${write(allowed)}`, reserved > 0 ? `${write(reserved)} reserved` : "", remaining === null ? "" : `${write(remaining)} left`];
  return parts.filter((part) => part !== "").join(" · ");
}

/** What is entered in the form of a budget: its limits as texts. */
export interface BudgetDraft {
  readonly type: ScopeType;
  readonly id: string;
  readonly window: BudgetWindow;
  readonly limits: Readonly<Record<Limit, string>>;
  readonly isStrict: boolean;
  readonly allowUnpriced: boolean;
}

const asText = (limit: number | null): string => (limit === null ? "" : String(limit));

export function draftOf(budget: Budget | null): BudgetDraft {
  if (budget === null) {
    const limits = { usd: "", tokens: "", requests: "", concurrent: "" };
    return { type: "org", id: "", window: "month", limits, isStrict: true, allowUnpriced: false };
  }
  const { usd, tokens, requests, concurrent } = budget.limits;
  return {
    ...budget.scope,
    window: budget.window,
    limits: { usd: asText(usd), tokens: asText(tokens), requests: asText(requests), concurrent: asText(concurrent) },
    isStrict: budget.isStrict,
    allowUnpriced: budget.allowUnpriced,
  };
}

const MOST: Readonly<Record<Limit, number>> = { usd: 1e9, tokens: Number.MAX_SAFE_INTEGER, requests: Number.MAX_SAFE_INTEGER, concurrent: 1e6 };

/** The number that a text is; null for an empty one, undefined for one that is no limit of this kind. */
export function limitOf(limit: Limit, typed: string): number | null | undefined {
  const plain = typed.trim().replaceAll(/[,_ ]/g, "").replace(/^\$/, "");
  if (plain === "") return null;
  const amount = /^\d+(?:\.\d+)?$/.test(plain) ? Number(plain) : NaN;
  if (!(amount <= MOST[limit]) || (limit !== "usd" && !Number.isInteger(amount))) return undefined;
  return amount;
}

export type DraftFaults = Readonly<Partial<Record<Limit | "id", string>>>;

/** What is wrong with a draft, by field; nothing if it can be sent. */
export function faultsOf(draft: BudgetDraft): DraftFaults {
  const faults: Partial<Record<Limit | "id", string>> = {};
  if (draft.type !== "org" && draft.id.trim() === "") faults.id = draft.type === "model" ? "Enter the name of a model." : "Choose one.";
  for (const limit of LIMITS) {
    if (limitOf(limit, draft.limits[limit]) === undefined) {
      faults[limit] = limit === "usd" ? "Enter an amount, such as 12.50." : "Enter a whole number.";
    }
  }
  const isEmpty = LIMITS.every((limit) => limitOf(limit, draft.limits[limit]) === null);
  if (isEmpty) faults.usd = "Enter at least one limit.";
  if (!draft.isStrict && draft.limits.concurrent.trim() !== "") faults.concurrent = "Only a budget that refuses calls can limit calls at once.";
  return faults;
}

/** The body of the call that changes a budget to a draft. */
export function changeOf(draft: BudgetDraft): Fields {
  const limit = (name: Limit): number | null => limitOf(name, draft.limits[name]) ?? null;
  return {
    window: draft.window,
    limit_usd: limit("usd"),
    limit_tokens: limit("tokens"),
    limit_requests: limit("requests"),
    limit_concurrent: limit("concurrent"),
    action: draft.isStrict ? "reject" : "alert",
    allow_unpriced: draft.allowUnpriced,
  };
}
