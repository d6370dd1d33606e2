// Requests take turns.
import { expect, test } from "vitest";
import { turns } from "./turns";

const { signal } = new AbortController();

/** Work that ends when it is told to. */
function job(name: string, begun: string[]) {
  let end = (): void => undefined;
  let fail = (): void => undefined;
  const promise = new Promise<string>((resolve, reject) => {
    end = () => resolve(name);
    fail = () => reject(new Error(name));
  });
  return {
    end: () => end(),
    fail: () => fail(),
    work: async () => {
      begun.push(name);
      return promise;
    },
  };
}

const settled = async (): Promise<void> => new Promise((next) => setTimeout(next, 0));

test("two at once are under way, and the others follow in their order", async () => {
  const [inTurn, begun] = [turns(2), [] as string[]];
  const jobs = ["a", "b", "c", "d"].map((name) => job(name, begun));
  const done = jobs.map(({ work }) => inTurn(signal, work).catch((error: unknown) => error));
  await settled();
  expect(begun).toEqual(["a", "b"]);
  jobs[1]?.fail();
  await settled();
  expect(begun).toEqual(["a", "b", "c"]);
  jobs[0]?.end();
  await settled();
  expect(begun).toEqual(["a", "b", "c", "d"]);
  jobs[2]?.end();
  jobs[3]?.end();
  expect(await Promise.all(done)).toEqual(["a", new Error("b"), "c", "d"]);
});

test("what is no longer wanted gives its turn away at once", async () => {
  const [inTurn, begun] = [turns(2), [] as string[]];
  const [first, second, last] = ["a", "b", "d"].map((name) => job(name, begun));
  const unwanted = new AbortController();
  const running = [first, second].map((one) => inTurn(signal, async () => one?.work()));
  const left = inTurn(unwanted.signal, async () => "c").catch((error: unknown) => (error as Error).name);
  const after = inTurn(signal, async () => last?.work());
  unwanted.abort();
  first?.end();
  expect(await left).toBe("AbortError");
  await settled();
  expect(begun).toEqual(["a", "b", "d"]);
  second?.end();
  last?.end();
  expect(await Promise.all([...running, after])).toEqual(["a", "b", "d"]);
});
