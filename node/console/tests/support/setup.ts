// What is started once for a run: the proxies, the trap, the browser and the data.
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { plant, type Seed } from "../seed";
import { Api } from "./api";
import { readEnvironment, type Environment } from "./env";
import { startProxy } from "./proxy";
import { startTrap } from "./trap";

export interface Stage {
  /** The address of the cluster, whose nodes answer in turn. */
  readonly base: string;
  readonly freshBase: string;
  readonly trap: string;
  readonly browser: string;
  readonly environment: Environment;
  readonly seed: Seed;
}

declare module "vitest" {
  interface ProvidedContext {
    readonly stage: Stage;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const environment = readEnvironment();
  const { consoleDir } = environment;
  const trap = await startTrap();
  const onReport = (report: { readonly body: string }): void => trap.addReport(report.body);
  const proxy = await startProxy({ nodes: environment.nodes, consoleDir, onReport });
  const freshProxy = await startProxy({ nodes: [environment.fresh.url], consoleDir, onReport });
  const browser = await chromium.launchServer({
    executablePath: environment.chromium,
    headless: true,
    proxy: { server: trap.url },
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--proxy-bypass-list=127.0.0.1"],
  });
  const started = performance.now();
  const seed = await plant(new Api(proxy.url, environment.key), environment);
  console.log(`planted the data in ${Math.round(performance.now() - started)} ms`);
  project.provide("stage", {
    base: proxy.url,
    freshBase: freshProxy.url,
    trap: trap.url,
    browser: browser.wsEndpoint(),
    environment,
    seed,
  });
  return async () => {
    await browser.close();
    proxy.close();
    freshProxy.close();
    trap.close();
  };
}
