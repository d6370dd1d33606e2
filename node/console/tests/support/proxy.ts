// A proxy on loopback that sends each request to another node in turn, so that flows meet all nodes of a cluster.
import { readFile } from "node:fs/promises";
import { createServer, request as send, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream";

/** Headers of a connection rather than of a message. `Host` stays: cookies and checks of the origin go by it. */
const OF_CONNECTIONS = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "upgrade"];

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

export interface Proxy {
  readonly url: string;
  close(): void;
}

/** A request that the proxy has passed on. */
export interface Passed {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

interface Wishes {
  readonly nodes: readonly string[];
  /** A build whose files are shown in the place of those inside the servers. */
  readonly consoleDir: string | null;
  readonly onReport: (report: Passed) => void;
}

export async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return `http://127.0.0.1:${address.port}`;
}

/** The file of a build that an address of the console means. */
async function fileOf(folder: string, path: string): Promise<{ readonly content: Buffer; readonly type: string } | null> {
  const asset = /^\/app\/assets\/([\w.-]+)$/.exec(path.split("?")[0] ?? "");
  const name = asset === null ? "index.html" : join("assets", asset[1] ?? "");
  const type = CONTENT_TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
  try {
    return { content: await readFile(join(folder, name)), type };
  } catch {
    return null;
  }
}

function keepReport(incoming: IncomingMessage, onReport: Wishes["onReport"]): void {
  const parts: Buffer[] = [];
  incoming.on("data", (part: Buffer) => parts.push(part));
  incoming.on("end", () => {
    onReport({ method: "POST", path: incoming.url ?? "", body: Buffer.concat(parts).toString("utf8") });
  });
}

/** The headers that a server gives to its page, without those of its content. */
async function pageHeaders(node: string): Promise<Readonly<Record<string, string>>> {
  const headers = Object.fromEntries((await fetch(`${node}/app`)).headers);
  for (const name of [...OF_CONNECTIONS, "content-length", "content-encoding", "etag", "date"]) delete headers[name];
  return headers;
}

/** Answers with a file of a build, under the headers that the server itself gives to its page. */
async function answerFromBuild(
  { consoleDir }: Wishes,
  path: string,
  headers: Promise<Readonly<Record<string, string>>>,
  outgoing: ServerResponse,
): Promise<boolean> {
  if (consoleDir === null || !/^\/app(?:[/?]|$)/.test(path)) return false;
  const file = await fileOf(consoleDir, path);
  if (file === null) return false;
  outgoing.writeHead(200, { ...(await headers), "content-type": file.type }).end(file.content);
  return true;
}

function passOn(node: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const headers = { ...incoming.headers };
  for (const name of OF_CONNECTIONS) delete headers[name];
  const { hostname, port } = new URL(node);
  const passed = send(
    { hostname, port, method: incoming.method, path: incoming.url, headers, setHost: false },
    (answer) => {
      const answered = answer.rawHeaders.flatMap((name, index, all) =>
        index % 2 === 0 && !OF_CONNECTIONS.includes(name.toLowerCase()) ? [[name, all[index + 1] ?? ""]] : [],
      );
      outgoing.writeHead(answer.statusCode ?? 502, answered.flat());
      pipeline(answer, outgoing, () => undefined);
    },
  );
  passed.on("error", () => {
    if (!outgoing.headersSent) outgoing.writeHead(502);
    outgoing.end();
  });
  outgoing.on("close", () => passed.destroy());
  pipeline(incoming, passed, () => undefined);
}

export async function startProxy(wishes: Wishes): Promise<Proxy> {
  let turn = 0;
  const headers = wishes.consoleDir === null ? Promise.resolve({}) : pageHeaders(wishes.nodes[0] ?? "");
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? "/";
    if (path.startsWith("/console/csp")) keepReport(incoming, wishes.onReport);
    const node = wishes.nodes[turn % wishes.nodes.length] ?? "";
    turn += 1;
    answerFromBuild(wishes, path, headers, outgoing).then(
      (isAnswered) => {
        if (!isAnswered) passOn(node, incoming, outgoing);
      },
      () => outgoing.writeHead(502).end(),
    );
  });
  server.keepAliveTimeout = 30_000;
  const url = await listening(server);
  return {
    url,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
