// Flow 3: signing in with a provider, on a server whose settings name the small provider of these tests.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject } from "vitest";
import { Api } from "../support/api";
import { entriesAfter, lastSequence } from "../support/audit";
import { neededOidc } from "../support/env";
import { flow, sessionOf, type Flow } from "../support/flow";
import { at, textAt } from "../support/json";
import { OpenIdProvider } from "../support/oidc";

/** The way to the provider leaves the server, and nothing else does. */
const TO_PROVIDER = /^request: GET http:\/\/127\.0\.0\.1:\d+\/authorize\?/;
const UNAUTHORIZED = /console: Failed to load resource: .* 401 .*\/console\/session$/;
const EXPECTED = [TO_PROVIDER, UNAUTHORIZED];

const settings = neededOidc(inject("stage").environment);
const api = new Api(settings.url, settings.key);
const owner = textAt(await api.call("POST", "/api/self/me", {}), "email");
const organization = textAt(await api.call("GET", "/v1/organization"), "objects", 0, "name");
const provider = new OpenIdProvider(settings.issuer, owner);

beforeAll(() => provider.start());
afterAll(() => provider.close());

/** Opens the sign-in screen in a browser of nobody. */
const openSignIn = (acted: Flow, next: string): Promise<Page> =>
  acted.open(null, `/app/sign-in?${new URLSearchParams({ next }).toString()}`, { base: settings.url });

const continueTo = (page: Page) =>
  page.getByRole("link", { name: `Continue with ${new URL(settings.issuer).host}`, exact: true });

/** The address below the origin, where the origin is that of the server. */
function placeOf(page: Page): string {
  const { origin, pathname, search } = new URL(page.url());
  return (origin === settings.url ? "" : origin) + pathname + search;
}

flow(
  "3 signing in with the provider lands on next, and signing out ends it",
  async (acted) => {
    const before = await lastSequence(api);
    const next = "/app/welcome?project=support-bot&lang=curl";
    const page = await openSignIn(acted, next);
    await continueTo(page).press("Enter");
    await page.getByRole("heading", { level: 1, name: "Send traces" }).waitFor();
    expect(placeOf(page)).toBe(next);
    expect(provider.counts).toEqual({ visits: 1, tokens: 1 });
    const cookies = await page.context().cookies();
    expect(cookies).toHaveLength(1);
    expect(cookies[0]).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/" });
    const held = await sessionOf(settings.url, cookies);
    expect([at(held, "user", "email"), at(held, "by")]).toEqual([owner, "login"]);
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Send traces" }).waitFor();

    await page.getByRole("button", { name: /^Signed in as/ }).click();
    await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Sign in to Assay" }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
    expect(await sessionOf(settings.url, cookies)).toBeNull();
    const added = (await entriesAfter(api, before)).map((entry) => at(entry, "action"));
    expect(added).toContain("login");
    expect(added.filter((action) => /^console_/.test(String(action)))).toEqual(["console_sign_in", "console_sign_out"]);
  },
  EXPECTED,
);

const OUTSIDE = ["//evil.invalid", "/\\evil.invalid", "https://evil.invalid/app", "/app/..//evil.invalid", "/console/session"];

flow(
  "3 no address outside the console is gone to after the provider",
  async (acted) => {
    const context = await acted.enter(null, { base: settings.url });
    const page = await context.newPage();
    const expectInside = async (next: string): Promise<void> => {
      await page.getByRole("heading", { name: "Projects" }).waitFor();
      expect(["/app", `/app/${organization}`], next).toContain(placeOf(page));
      // Without its cookie, a read that is under way would be refused.
      await page.waitForLoadState("networkidle");
      await context.clearCookies();
    };
    for (const next of OUTSIDE) {
      const query = new URLSearchParams({ next }).toString();
      await page.goto(`/app/sign-in?${query}`);
      await continueTo(page).click();
      await expectInside(next);
      await page.goto(`/console/login?${query}`);
      await expectInside(next);
    }
  },
  EXPECTED,
);

flow(
  "3 a provider that lets nobody in leads back to the sign-in, which says so",
  async (acted) => {
    provider.answer = "denied";
    const page = await openSignIn(acted, `/app/${organization}`);
    await continueTo(page).click();
    await page.getByRole("alert").filter({ hasText: "The identity provider did not let you sign in." }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
    provider.answer = "signed in";
    await continueTo(page).click();
    await page.getByRole("heading", { name: "Projects" }).waitFor();
  },
  EXPECTED,
);
