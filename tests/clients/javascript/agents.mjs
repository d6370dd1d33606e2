// The MCP libraries of TypeScript as a coding agent: list and call every tool, with a key, with OAuth, without rights.
// Arguments: how to authenticate (key, oauth or refused), the library (sdk or client), and a file with the calls.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const RESULT_BYTES_MAX = 256 * 1024;
const BACK = "http://127.0.0.1:49997/agent";
const [way, library, place] = process.argv.slice(2);
const { MCP_URL: url, MCP_KEY: key } = process.env;
const wanted = JSON.parse(readFileSync(place, "utf8"));

const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  library === "client"
    ? await import("@modelcontextprotocol/client")
    : {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
        ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
      };

// A person who logs in at the provider, reads the page of the server, and allows access.
async function visit(address) {
  const get = (place) => fetch(place, { redirect: "manual" });
  for (let step = 0; step < 2; step += 1) {
    const answer = await get(address);
    assert.equal(answer.status, 302, await answer.text());
    address = answer.headers.get("location");
  }
  const asked = await get(address);
  const page = await asked.text();
  assert.equal(asked.status, 200, page);
  assert.match(page, /Agent of TypeScript/);
  assert.match(page, /127\.0\.0\.1:49997/);
  const answer = /name="answer" value="([^"]+)"/.exec(page)[1];
  const allowed = await fetch(new URL("/oauth/invitations", address), {
    method: "POST",
    redirect: "manual",
    body: new URLSearchParams({ answer }),
  });
  assert.equal(allowed.status, 302, await allowed.text());
  const back = allowed.headers.get("location");
  assert.ok(back.startsWith(`${BACK}?`), back);
  return new URL(back).searchParams;
}

// The registration, the tokens and the verifier of one process.
const kept = { answer: null };
const authProvider = {
  redirectUrl: BACK,
  clientMetadata: {
    client_name: "Agent of TypeScript",
    redirect_uris: [BACK],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => "the-state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  redirectToAuthorization: async (address) => void (kept.answer = await visit(address)),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
};

function transport() {
  if (way === "oauth") return new StreamableHTTPClientTransport(new URL(url), { authProvider });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  return new StreamableHTTPClientTransport(new URL(url), { requestInit });
}

const options = library === "client" ? { versionNegotiation: { mode: "auto" } } : {};
const made = () => new Client({ name: "agent", version: "1.0.0" }, options);

async function connected() {
  const first = made();
  const way1 = transport();
  try {
    await first.connect(way1);
    return first;
  } catch (error) {
    if (way !== "oauth" || !(error instanceof UnauthorizedError)) throw error;
  }
  assert.equal(kept.answer.get("state"), "the-state");
  await way1.finishAuth(kept.answer.get("code"), kept.answer.get("iss"));
  const second = made();
  await second.connect(transport());
  return second;
}

const client = await connected();
const tools = [];
let cursor;
do {
  const page = await client.listTools(cursor === undefined ? {} : { cursor });
  tools.push(...page.tools);
  cursor = page.nextCursor;
} while (cursor !== undefined);
assert.deepEqual(tools.map((tool) => tool.name), wanted.tools);
assert.ok(tools.every((tool) => tool.annotations.readOnlyHint));
assert.match(client.getInstructions() ?? "", /read-only/);

for (const call of wanted.calls) {
  // The library checks the result against the schema of the tool.
  const result = await client.callTool({ name: call.tool, arguments: call.arguments });
  const told = JSON.stringify(result);
  assert.ok(Buffer.byteLength(told) <= RESULT_BYTES_MAX, `${call.tool}: ${told.length}`);
  if (way === "refused" && !call.is_public) {
    for (const text of wanted.hidden) assert.ok(!told.includes(text), `${call.tool} says ${text}: ${told}`);
  } else {
    assert.notEqual(result.isError, true, `${call.tool}: ${told}`);
    assert.ok(told.replaceAll('\\"', '"').includes(call.text), `${call.tool}: ${told}`);
  }
}
const wrong = await client.callTool({ name: "sql_query", arguments: { query: "SELECT nonsense FROM" } });
assert.equal(wrong.isError, true);
await client.close();
console.log(`${wanted.calls.length} calls`);
