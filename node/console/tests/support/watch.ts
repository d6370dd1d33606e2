// Watches a browser for what no page may do: errors, dialogs, other origins, violations of the policy.
import type { BrowserContext, ConsoleMessage, Page } from "playwright-core";

const isOwn = (url: string, base: string): boolean =>
  url.startsWith(`${base}/`) || url.startsWith(`blob:${base}/`) || url === "about:blank";

function tellConsole(message: ConsoleMessage, faults: string[]): void {
  if (message.type() !== "error" && message.type() !== "warning") return;
  faults.push(`console: ${message.text()} at ${message.location().url}`);
}

function watchPage(page: Page, base: string, faults: string[]): void {
  page.on("pageerror", (error) => faults.push(`page error: ${error.message}`));
  page.on("console", (message) => tellConsole(message, faults));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.type()} ${dialog.message()}`);
    void dialog.dismiss().catch(() => undefined);
  });
  page.on("crash", () => faults.push("the page crashed"));
  page.on("websocket", (socket) => faults.push(`web socket: ${socket.url()}`));
  page.on("download", (download) => {
    if (!isOwn(download.url(), base)) faults.push(`download: ${download.url()}`);
  });
}

/** Adds to `faults` whatever goes wrong in the pages of a browser. */
export function watch(context: BrowserContext, base: string, faults: string[]): void {
  context.on("page", (page) => watchPage(page, base, faults));
  context.on("request", (request) => {
    const url = request.url();
    if (!isOwn(url, base)) faults.push(`request: ${request.method()} ${url.slice(0, 200)}`);
  });
}
