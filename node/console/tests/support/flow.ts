// A flow: people open pages, and at its end no page may have done what no page may do.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, expect, inject, test } from "vitest";
import type { Person } from "../seed";
import { Api } from "./api";
import { listAt } from "./json";
import type { Stage } from "./setup";
import { watch } from "./watch";

/** Services of its maker that Chromium calls by itself, whatever page is open. Pages that call them are seen by `watch`. */
const CALLED_BY_CHROMIUM = /^\w+ (?:http:\/\/)?[\w.-]+\.(?:google|googleapis|gvt1)\.com[:/]/;

/** Milliseconds that pages are waited for at most. What is asserted is not a time: the machine may be very busy. */
export const PATIENCE = 30_000;

let browser: Promise<Browser> | null = null;

export function theBrowser(): Promise<Browser> {
  browser ??= chromium.connect(inject("stage").browser);
  return browser;
}

afterAll(async () => {
  const open = browser;
  browser = null;
  await (await open)?.close();
});

export interface Wishes extends BrowserContextOptions {
  /** Opens the page at another server than the cluster. */
  readonly base?: string;
}

/** The pair of name and value in the cookie of a new session. */
export async function sessionCookie(base: string, key: string): Promise<{ readonly name: string; readonly value: string }> {
  const response = await fetch(`${base}/console/session`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "x-assay-console": "1" },
  });
  const [, name = "", value = ""] = /^([^=]+)=([^;]+)/.exec(response.headers.get("set-cookie") ?? "") ?? [];
  if (!response.ok || value === "") throw new Error(`no session: ${response.status} ${await response.text()}`);
  return { name, value };
}

/** What the server says of the session of some cookies; null if there is none. */
export async function sessionOf(base: string, cookies: readonly { readonly name: string; readonly value: string }[]): Promise<unknown> {
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const response = await fetch(`${base}/console/session`, { headers: { cookie, "x-assay-console": "1" } });
  if (response.status === 401) return null;
  if (!response.ok) throw new Error(`no answer about the session: ${response.status} ${await response.text()}`);
  return response.json();
}

export class Flow {
  readonly stage: Stage = inject("stage");
  readonly seed = this.stage.seed;
  /** The API as Ann calls it. */
  readonly api = new Api(this.stage.base, this.seed.people.ann.key);
  readonly faults: string[] = [];
  private readonly contexts: BrowserContext[] = [];

  apiOf(person: Person): Api {
    return new Api(this.stage.base, person.key);
  }

  /** Opens a browser of somebody, signed in unless it is nobody. */
  async enter(person: Person | null, { base = this.stage.base, ...options }: Wishes = {}): Promise<BrowserContext> {
    const context = await (await theBrowser()).newContext({
      baseURL: base,
      viewport: { width: 1400, height: 900 },
      locale: "en-GB",
      timezoneId: "Etc/UTC",
      permissions: ["clipboard-read", "clipboard-write"],
      ...options,
    });
    this.contexts.push(context);
    context.setDefaultTimeout(PATIENCE);
    watch(context, base, this.faults);
    if (person !== null) {
      const { name, value } = await sessionCookie(base, person.key);
      await context.addCookies([{ name, value, url: base, httpOnly: true, sameSite: "Strict" }]);
    }
    return context;
  }

  /** Opens a page of somebody in a browser of their own. */
  async open(person: Person | null, path: string, wishes: Wishes = {}): Promise<Page> {
    const page = await (await this.enter(person, wishes)).newPage();
    await page.goto(path);
    return page;
  }

  /** An address below the organization. */
  path(...parts: readonly string[]): string {
    return ["/app", ...[this.seed.organization, ...parts].map(encodeURIComponent)].join("/");
  }

  async end(name: string): Promise<void> {
    const { shots } = this.stage.environment;
    for (const [index, page] of this.contexts.flatMap((context) => context.pages()).entries()) {
      if (shots === null || page.isClosed()) continue;
      mkdirSync(shots, { recursive: true });
      const file = `${name.replaceAll(/[^\w]+/g, "-").slice(0, 60)}-${index}.png`;
      await page.screenshot({ path: join(shots, file) }).catch(() => undefined);
    }
    await Promise.all(this.contexts.map((context) => context.close()));
    const strays: unknown = await (await fetch(`${this.stage.trap}/strays`)).json();
    for (const call of listAt(strays, "calls").map(String)) {
      if (!CALLED_BY_CHROMIUM.test(call)) this.faults.push(`called outside: ${call}`);
    }
    for (const report of listAt(strays, "reports")) this.faults.push(`reported: ${String(report)}`);
  }
}

/**
 * Adds a flow as a test. `expected` are the faults that belong to it, such as an answer 401 where a wrong key is tried;
 * every other fault fails it.
 */
export function flow(name: string, run: (flow: Flow) => Promise<void>, expected: readonly RegExp[] = []): void {
  test(name, async () => {
    const acted = new Flow();
    try {
      await run(acted);
    } finally {
      await acted.end(name);
    }
    const faults = acted.faults.filter((fault) => !expected.some((known) => known.test(fault)));
    expect(faults).toEqual([]);
  });
}
