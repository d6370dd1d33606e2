// How the flows run: one worker, one browser, against servers that somebody else started.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.flow.ts"],
    environment: "node",
    globalSetup: ["tests/support/setup.ts"],
    fileParallelism: false,
    maxWorkers: 1,
    retry: 0,
    expect: { poll: { timeout: 10_000, interval: 50 } },
    testTimeout: 120_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    sequence: { shuffle: false },
  },
});
