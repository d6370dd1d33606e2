// Calls the public API with a key, as any program does.
import { listAt } from "./json";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** An answer that is no success. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    what: string,
    body: string,
  ) {
    super(`${what}: ${status} ${body.slice(0, 600)}`);
  }
}

export class Api {
  constructor(
    readonly base: string,
    readonly key: string,
  ) {}

  async send(method: Method, path: string, body?: unknown): Promise<Response> {
    return fetch(this.base + path, {
      method,
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
  }

  async call(method: Method, path: string, body?: unknown): Promise<unknown> {
    const response = await this.send(method, path, body);
    const text = await response.text();
    if (!response.ok) throw new Refused(response.status, `${method} ${path}`, text);
    return text === "" ? null : JSON.parse(text);
  }

  /** The rows of a query. */
  async query(query: string, more: Readonly<Record<string, unknown>> = {}): Promise<readonly unknown[]> {
    return listAt(await this.call("POST", "/btql", { query, ...more }), "data");
  }

  insert(kind: "project_logs" | "experiment" | "dataset", id: string, events: readonly unknown[]): Promise<unknown> {
    return this.call("POST", `/v1/${kind}/${id}/insert`, { events });
  }
}
