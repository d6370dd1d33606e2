// What keeps the console safe: the policy of its page, and where the cookie of a session counts.
import { createServer, request as send } from "node:http";
import { expect } from "vitest";
import { entriesAfter, lastSequence } from "./support/audit";
import { flow, sessionCookie, theBrowser, type Flow } from "./support/flow";
import { at, textAt } from "./support/json";
import { listening } from "./support/proxy";

/** The policy, to the letter. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " +
  "font-src 'self'; connect-src 'self'; worker-src 'self'; frame-src blob:; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types assay-worker; report-uri /console/csp";

const NO_SESSION = 401;
const ADDRESSES = ["/app", "/app/sign-in", "/app/welcome", "/app/any/p/project/logs", "/app/%3Cscript%3E"];

flow("the page wears the policy to the letter, and has nothing inline", async (acted) => {
  const node = acted.stage.environment.nodes[0] ?? "";
  for (const address of ADDRESSES) {
    const response = await fetch(node + address);
    const html = await response.text();
    expect(response.headers.get("content-security-policy"), address).toBe(POLICY);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("referrer-policy")).toBe("same-origin");
    expect(response.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(response.headers.get("cross-origin-resource-policy")).toBe("same-origin");
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
    expect(html.length).toBeLessThan(2048);
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc="\/app\/assets\/)/i);
  }
});

/** Sends a request with headers that `fetch` does not let anybody set. */
function raw(base: string, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const sent = send({ hostname, port, path, headers: { host: `${hostname}:${port}`, ...headers } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject).end();
  });
}

async function cookieOf({ stage, seed }: Flow): Promise<string> {
  const { name, value } = await sessionCookie(stage.base, seed.people.ann.key);
  return `${name}=${value}`;
}

const READS = ["/v1/project", "/console/session", "/console/projects", "/v1/api_key"];

flow("the cookie counts only with the header and from our own pages; a bearer counts from anywhere", async (acted) => {
  const { base } = acted.stage;
  const cookie = await cookieOf(acted);
  const ours = { cookie, "x-assay-console": "1" };
  for (const path of READS) {
    expect(await raw(base, path, ours), path).toBe(200);
    expect(await raw(base, path, { ...ours, origin: base }), path).toBe(200);
    expect(await raw(base, path, { ...ours, "sec-fetch-site": "same-origin" }), path).toBe(200);
    expect(await raw(base, path, { cookie }), `${path} without the header`).toBe(NO_SESSION);
    expect(await raw(base, path, { ...ours, origin: "http://evil.invalid" }), path).toBe(NO_SESSION);
    expect(await raw(base, path, { ...ours, origin: "null" }), path).toBe(NO_SESSION);
    for (const site of ["cross-site", "same-site", "none", ""]) {
      expect(await raw(base, path, { ...ours, "sec-fetch-site": site }), `${path} ${site}`).toBe(NO_SESSION);
    }
  }
  const elsewhere = { origin: "http://elsewhere.invalid", "sec-fetch-site": "cross-site" };
  const bearer = { authorization: `Bearer ${acted.api.key}`, ...elsewhere };
  expect(await raw(base, "/v1/project", bearer)).toBe(200);
  expect(await raw(base, "/v1/project", { ...ours, authorization: "Bearer sk-wrong" })).toBe(NO_SESSION);
});

/** A page of somebody else on this machine, from which browsers send cookies of `SameSite=Strict` too. */
async function foreignSite(html: string): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((_, outgoing) => {
    outgoing.writeHead(200, { "content-type": "text/html" }).end(html);
  });
  const url = await listening(server);
  return {
    url,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What a page of another origin gets from the API. */
async function askFrom(acted: Flow, path: string, init: Readonly<Record<string, unknown>>): Promise<string> {
  const { name, value } = await sessionCookie(acted.stage.base, acted.seed.people.ann.key);
  const context = await (await theBrowser()).newContext();
  const site = await foreignSite("<!doctype html><title>elsewhere</title>");
  try {
    await context.addCookies([{ name, value, url: acted.stage.base, httpOnly: true, sameSite: "Strict" }]);
    const page = await context.newPage();
    await page.goto(site.url);
    return await page.evaluate(
      async ([url, options]) => {
        try {
          const response = await fetch(url, options);
          return `${response.type} ${response.status} ${(await response.text()).slice(0, 80)}`;
        } catch (error) {
          return `failed: ${String(error)}`;
        }
      },
      [acted.stage.base + path, init] as const,
    );
  } finally {
    await context.close();
    site.close();
  }
}

flow("a page of another origin gets nothing by the cookie, with and without CORS", async (acted) => {
  const cookieOnly = { credentials: "include" };
  expect(await askFrom(acted, "/v1/project", cookieOnly)).toMatch(/^(?:failed|cors 401)/);
  expect(await askFrom(acted, "/v1/project", { ...cookieOnly, mode: "no-cors" })).toMatch(/^opaque 0 $/);
  expect(await askFrom(acted, "/v1/project", { ...cookieOnly, headers: { "x-assay-console": "1" } })).toMatch(/^failed/);
  const before = (await acted.api.query(`SELECT id FROM project_logs('${acted.seed.demo.id}')`)).length;
  const write = { ...cookieOnly, mode: "no-cors", method: "POST", body: '{"events":[{"id":"forged"}]}' };
  await askFrom(acted, `/v1/project_logs/${acted.seed.demo.id}/insert`, write);
  expect(await acted.api.query(`SELECT id FROM project_logs('${acted.seed.demo.id}')`)).toHaveLength(before);
  const bearer = { headers: { authorization: `Bearer ${acted.api.key}` } };
  expect(await askFrom(acted, "/v1/project", bearer)).toMatch(/^cors 200 /);
});

flow(
  "no other page shows the console in a frame",
  async (acted) => {
    const context = await (await theBrowser()).newContext();
    const site = await foreignSite(`<!doctype html><iframe title="framed" src="${acted.stage.base}/app"></iframe>`);
    try {
      const page = await context.newPage();
      await page.goto(site.url);
      const framed = page.frames().find((one) => one !== page.mainFrame());
      await expect.poll(() => framed?.url()).toBe("chrome-error://chromewebdata/");
    } finally {
      await context.close();
      site.close();
    }
  },
  [/^reported: .*"violated-directive":"frame-ancestors"/],
);

flow("a session has a value of its own, ends at once, and cannot be fixed beforehand", async (acted) => {
  const { base } = acted.stage;
  const first = await cookieOf(acted);
  const second = await cookieOf(acted);
  expect(first).not.toBe(second);
  expect(first.split("=")[1]?.length).toBeGreaterThanOrEqual(43);
  const name = first.split("=")[0] ?? "";
  const fixed = `${name}=${"A".repeat(43)}`;
  const opened = await fetch(`${base}/console/session`, {
    method: "POST",
    headers: { authorization: `Bearer ${acted.api.key}`, "x-assay-console": "1", cookie: fixed },
  });
  expect(opened.headers.get("set-cookie")).not.toContain("A".repeat(43));
  const ask = (cookie: string): Promise<number> => raw(base, "/console/session", { cookie, "x-assay-console": "1" });
  expect(await ask(fixed)).toBe(NO_SESSION);
  expect([await ask(first), await ask(second)]).toEqual([200, 200]);
  const headers = { cookie: first, "x-assay-console": "1" };
  const ended = await fetch(`${base}/console/session`, { method: "DELETE", headers });
  expect(ended.headers.get("set-cookie")).toMatch(/Max-Age=0/);
  expect([await ask(first), await ask(second)]).toEqual([NO_SESSION, 200]);
});

flow("signing in and out is on record: who, with which key, and in which order", async (acted) => {
  const { base } = acted.stage;
  const { ann } = acted.seed.people;
  const made = await acted.api.call("POST", "/v1/api_key", { name: "sessions on record" });
  const [id, key] = [textAt(made, "id"), textAt(made, "key")];
  const before = await lastSequence(acted.api);
  const signIn = async (): Promise<Readonly<Record<string, string>>> => {
    const { name, value } = await sessionCookie(base, key);
    return { cookie: `${name}=${value}`, "x-assay-console": "1" };
  };
  const signOut = async (headers: Readonly<Record<string, string>>, where = ""): Promise<number> =>
    (await fetch(`${base}/console/session${where}`, { method: "DELETE", headers })).status;
  const [first, second, third] = [await signIn(), await signIn(), await signIn()];
  expect(await signOut(first)).toBe(200);
  expect(await signOut(first), "a session that has ended").toBe(200);
  expect(await signOut(second, "?everywhere=true")).toBe(200);
  expect(await raw(base, "/console/session", third)).toBe(NO_SESSION);
  const entries = (await entriesAfter(acted.api, before)).filter((entry) => at(entry, "actor", "credential_id") === id);
  expect(entries.map((entry) => at(entry, "action"))).toEqual([
    "console_sign_in",
    "console_sign_in",
    "console_sign_in",
    "console_sign_out",
    "console_sign_out",
  ]);
  for (const entry of entries) {
    expect(at(entry, "actor")).toMatchObject({ type: "user", user_id: ann.id, user_email: ann.email, credential: "api_key" });
    expect([at(entry, "object_type"), at(entry, "object_id")]).toEqual(["user", ann.id]);
    expect(JSON.stringify(entry)).not.toContain(key);
  }
  await acted.api.call("DELETE", `/v1/api_key/${id}`);
});

flow("a session ends with the key that opened it, and its cookie says how it travels", async (acted) => {
  const { base } = acted.stage;
  const made = await acted.api.call("POST", "/v1/api_key", { name: "ends with its session" });
  const opened = await fetch(`${base}/console/session`, {
    method: "POST",
    headers: { authorization: `Bearer ${textAt(made, "key")}`, "x-assay-console": "1" },
  });
  const set = opened.headers.get("set-cookie") ?? "";
  const [pair = "", ...attributes] = set.split("; ");
  expect(attributes).toEqual(expect.arrayContaining(["HttpOnly", "SameSite=Strict", "Path=/"]));
  expect(set).not.toMatch(/Domain=/i);
  const headers = { cookie: pair, "x-assay-console": "1" };
  expect(await raw(base, "/console/session", headers)).toBe(200);
  await acted.api.call("DELETE", `/v1/api_key/${textAt(made, "id")}`);
  await expect.poll(() => raw(base, "/console/session", headers)).toBe(NO_SESSION);
});

const NEXTS: readonly (readonly [string, string])[] = [
  ["//evil.invalid", "/app"],
  ["\\\\evil.invalid", "/app"],
  ["/\\evil.invalid", "/app"],
  ["https://evil.invalid/app", "/app"],
  ["javascript:alert(1)", "/app"],
  ["/app//evil.invalid", "/app"],
  ["/app/..//evil.invalid", "/app"],
  ["/app/../v1/project", "/app"],
  ["/app/%2e%2e/%2e%2e/v1", "/app"],
  ["/app/%252F%252Fevil.invalid", "/app"],
  ["/app/\t/evil.invalid", "/app"],
  ["/application", "/app"],
  ["/console/session", "/app"],
  ["data:text/html,x", "/app"],
  ["/app/sign-in?next=/app", "/app"],
  ["", "/app"],
  ["/app/welcome?lang=curl", "/app/welcome"],
];

flow("signing in leads to pages of the console only", async (acted) => {
  const context = await acted.enter(acted.seed.people.ann);
  const page = await context.newPage();
  for (const [next, expected] of NEXTS) {
    await page.goto(`/app/sign-in?next=${encodeURIComponent(next)}`);
    await expect.poll(() => new URL(page.url()).pathname, { message: next }).not.toBe("/app/sign-in");
    const { origin, pathname } = new URL(page.url());
    expect(origin, next).toBe(acted.stage.base);
    const places = expected === "/app" ? ["/app", acted.path()] : [expected];
    expect(places, next).toContain(pathname);
  }
});
