// A small OpenID provider: whoever comes is signed in at once as one person, by a code, a challenge and an ID token.
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

/** The id that servers have at the provider. */
export const CLIENT = "assay";

const TOKEN_SECONDS = 300;

/** What the provider does with the next person who comes. */
type Answer = "signed in" | "denied";

interface Asked {
  readonly redirect: string;
  readonly challenge: string;
  readonly nonce: string;
}

const encoded = (bytes: Buffer | string): string => Buffer.from(bytes).toString("base64url");

export class OpenIdProvider {
  answer: Answer = "signed in";
  /** How often somebody came, and how many codes were exchanged for a token. */
  readonly counts = { visits: 0, tokens: 0 };
  /** New in each run, so that a server that was used before asks for the keys again. */
  private readonly keyId = randomUUID();
  private readonly keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
  private readonly codes = new Map<string, Asked>();
  private readonly server = createServer((incoming, outgoing) => {
    this.handle(incoming, outgoing).catch((error: unknown) => outgoing.writeHead(500).end(String(error)));
  });

  constructor(
    readonly issuer: string,
    readonly email: string,
  ) {}

  async start(): Promise<void> {
    const { hostname, port } = new URL(this.issuer);
    await new Promise<void>((resolve, reject) => {
      this.server.once("error", reject).listen(Number(port), hostname, resolve);
    });
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(incoming.url ?? "/", this.issuer);
    const json = (status: number, value: unknown): unknown =>
      outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    switch (pathname) {
      case "/.well-known/openid-configuration":
        return void json(200, this.metadata());
      case "/keys":
        return void json(200, { keys: [this.publicKey()] });
      case "/authorize": {
        const location = this.authorize(searchParams);
        if (location === null) return void outgoing.writeHead(400).end("The request is not complete.");
        return void outgoing.writeHead(302, { location }).end();
      }
      case "/token": {
        const token = this.exchange(new URLSearchParams(await text(incoming)));
        if (token === null) return void json(400, { error: "invalid_grant" });
        return void json(200, { access_token: randomUUID(), token_type: "Bearer", id_token: token });
      }
      default:
        outgoing.writeHead(404).end();
    }
  }

  private metadata(): unknown {
    const { issuer } = this;
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      response_types_supported: ["code"],
      id_token_signing_alg_values_supported: ["RS256"],
      token_endpoint_auth_methods_supported: ["none"],
    };
  }

  private publicKey(): unknown {
    return { ...this.keys.publicKey.export({ format: "jwk" }), kid: this.keyId, use: "sig", alg: "RS256" };
  }

  /** Where a browser goes back to; null if it did not bring what a code needs. */
  private authorize(asked: URLSearchParams): string | null {
    const isCode = asked.get("response_type") === "code" && asked.get("client_id") === CLIENT;
    const redirect = asked.get("redirect_uri");
    const challenge = asked.get("code_challenge");
    if (!isCode || redirect === null || challenge === null || asked.get("code_challenge_method") !== "S256") return null;
    this.counts.visits += 1;
    const back = new URL(redirect);
    back.searchParams.set("state", asked.get("state") ?? "");
    if (this.answer === "denied") {
      back.searchParams.set("error", "access_denied");
    } else {
      const code = randomUUID();
      this.codes.set(code, { redirect, challenge, nonce: asked.get("nonce") ?? "" });
      back.searchParams.set("code", code);
    }
    return back.href;
  }

  /** The ID token for a code, which is good once, and for the verifier of its challenge only. */
  private exchange(form: URLSearchParams): string | null {
    const code = form.get("code") ?? "";
    const asked = this.codes.get(code);
    this.codes.delete(code);
    const challenge = encoded(createHash("sha256").update(form.get("code_verifier") ?? "").digest());
    const isTheirs = asked?.challenge === challenge && asked.redirect === form.get("redirect_uri");
    if (asked === undefined || !isTheirs || form.get("client_id") !== CLIENT) return null;
    this.counts.tokens += 1;
    return this.signed({ nonce: asked.nonce, email: this.email, email_verified: true, sub: "1" });
  }

  private signed(claims: Readonly<Record<string, unknown>>): string {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.issuer, aud: CLIENT, iat: now, exp: now + TOKEN_SECONDS, ...claims };
    const message = [{ alg: "RS256", kid: this.keyId, typ: "JWT" }, all].map((part) => encoded(JSON.stringify(part))).join(".");
    return `${message}.${encoded(sign("sha256", Buffer.from(message), this.keys.privateKey))}`;
  }
}
