// The way out of the browser, which leads nowhere: it keeps a list of who was called beyond loopback.
import { createServer, type IncomingMessage } from "node:http";
import { listening } from "./proxy";

/** What happened in the browser that no page may cause. */
export interface Strays {
  /** Addresses outside loopback that were called. */
  readonly calls: readonly string[];
  /** Reports of violations of the Content-Security-Policy. */
  readonly reports: readonly string[];
}

export interface Trap {
  readonly url: string;
  addReport(text: string): void;
  close(): void;
}

/** Starts the trap. `GET /strays` of it returns what was kept since the last time, and forgets it. */
export async function startTrap(): Promise<Trap> {
  let calls: string[] = [];
  let reports: string[] = [];
  const server = createServer((incoming: IncomingMessage, outgoing) => {
    if (incoming.url === "/strays") {
      outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ calls, reports }));
      calls = [];
      reports = [];
      return;
    }
    calls.push(`${incoming.method} ${incoming.url}`);
    outgoing.writeHead(403).end();
  });
  server.on("connect", (incoming: IncomingMessage, socket) => {
    calls.push(`CONNECT ${incoming.url}`);
    // The browser may be gone before it has the answer, which ends nothing but this connection.
    socket.on("error", () => socket.destroy());
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  const url = await listening(server);
  return {
    url,
    addReport: (text) => reports.push(text),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
