// Takes the pictures of the README and of the guide: logs, a trace and a comparison, in both themes.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { makeProject } from "../seed";
import { flow, theBrowser, type Flow } from "../support/flow";
import { traces } from "../support/logs";
import { EXPERIMENTS, HERO, HERO_SPAN, NOW, plantStory, RANGE } from "../support/story";

const BYTES_MAX = 150_000;
const BEST_QUALITY = 0.96;
const QUALITY_STEP = 0.06;

/** Encodes a picture as WebP, as well as its bytes allow. */
async function asWebp(png: Buffer): Promise<Buffer> {
  const context = await (await theBrowser()).newContext();
  const page = await context.newPage();
  try {
    for (let quality = BEST_QUALITY; quality > 0.3; quality -= QUALITY_STEP) {
      const encoded = await page.evaluate(
        async ([source, wanted]) => {
          const image = await createImageBitmap(await (await fetch(source)).blob());
          const canvas = new OffscreenCanvas(image.width, image.height);
          canvas.getContext("2d")?.drawImage(image, 0, 0);
          const blob = await canvas.convertToBlob({ type: "image/webp", quality: wanted });
          const bytes = new Uint8Array(await blob.arrayBuffer());
          return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
        },
        [`data:image/png;base64,${png.toString("base64")}`, quality] as const,
      );
      const file = Buffer.from(encoded, "base64");
      if (file.length < BYTES_MAX) return file;
    }
    throw new Error("the picture is too large in any quality");
  } finally {
    await context.close();
  }
}

interface Scene {
  readonly name: string;
  readonly path: string;
  readonly ready: (page: Page) => Promise<void>;
}

function scenes(acted: Flow, project: string): readonly Scene[] {
  const at = (...parts: readonly string[]): string => acted.path("p", project, ...parts);
  const query = (parameters: Readonly<Record<string, string>>): string => `?${new URLSearchParams(parameters).toString()}`;
  return [
    {
      name: "logs",
      path: at("logs") + query({ t: RANGE, cols: "time,input:232,output:252,scores:184,cost:92,duration:76" }),
      ready: async (page) => {
        await traces(page).getByRole("row").nth(20).waitFor();
        await page.getByRole("slider").waitFor();
        for (const value of ["Without errors", "task", "claude-sonnet-4", "reviewed"]) await page.getByRole("listitem").filter({ hasText: value }).first().waitFor();
      },
    },
    {
      name: "trace",
      path: at("trace", HERO) + query({ s: HERO_SPAN }),
      ready: (page) => page.getByRole("region", { name: "Output", exact: true }).getByText("Is there anything else?").waitFor(),
    },
    {
      name: "comparison",
      path: at("experiments", EXPERIMENTS.after) + query({ c: EXPERIMENTS.before, g: "metadata.topic" }),
      ready: (page) => page.getByRole("grid", { name: "Compared rows" }).getByRole("row").nth(8).waitFor(),
    },
  ];
}

flow("pictures of logs, a trace and a comparison", async (acted) => {
  const project = await makeProject(acted.api, "support-bot");
  await plantStory(acted.api, project);
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await acted.enter(acted.seed.people.ann, { colorScheme, reducedMotion: "reduce" });
    await context.clock.setFixedTime(NOW);
    for (const { name, path, ready } of scenes(acted, project.name)) {
      const page = await context.newPage();
      await page.goto(path);
      await ready(page);
      await page.mouse.move(700, 899);
      await page.waitForLoadState("networkidle");
      const file = await asWebp(await page.screenshot({ animations: "disabled" }));
      writeFileSync(fileURLToPath(new URL(`../../../guide/images/console-${name}-${colorScheme}.webp`, import.meta.url)), file);
      console.log(`${name}-${colorScheme}.webp: ${file.length} bytes`);
      expect(file.length).toBeLessThan(BYTES_MAX);
      await page.close();
    }
  }
});
