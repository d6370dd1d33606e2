// Tests what is said of jobs, and which rows they are about.
import { expect, test } from "vitest";
import { readJob } from "../../api/jobs";
import { endWords, matchingFilter, progressWords, withJob } from "./jobs";

const job = (more: Readonly<Record<string, unknown>> = {}) =>
  readJob({ id: "j", what: "Add the tags x", state: "running", matched: null, done: 0, started: "", ended: null, error: null, ...more });

test("a job is about the range and the filter of the list", () => {
  const range = { from: "2026-05-04T10:00:00.000Z", to: null };
  expect(matchingFilter({ ...range, filter: "" })).toBe("created >= '2026-05-04T10:00:00.000Z'");
  expect(matchingFilter({ ...range, to: "2026-05-05T10:00:00.000Z", filter: "a = 1 OR b = 2" })).toBe(
    "created >= '2026-05-04T10:00:00.000Z' AND created < '2026-05-05T10:00:00.000Z' AND (a = 1 OR b = 2)",
  );
  expect(matchingFilter({ from: null, to: null, filter: "" })).toBe("");
});

test("the progress of a job says how many rows there are once they are counted", () => {
  expect(progressWords(job())).toBe("0");
  expect(progressWords(job({ matched: 48_000, done: 1200 }))).toBe("1,200 of 48,000");
});

test("the end of a job says how far it got, and why it failed", () => {
  expect(endWords("Tagging", job({ state: "done", matched: 2, done: 2 }))).toEqual({ text: "Tagging is done: 2 of 2.", isFailure: false });
  expect(endWords("Tagging", job({ state: "cancelled", matched: 9, done: 2 })).text).toContain("What is done stays done.");
  expect(endWords("Tagging", job({ state: "failed", matched: 9, done: 2, error: "The object is gone." }))).toEqual({
    text: "Tagging failed: 2 of 9. The object is gone.",
    isFailure: true,
  });
});

test("a newer state takes the place of the older one", () => {
  const one = { job: job(), organization: "acme", title: "Tagging" };
  const later = { ...one, job: job({ done: 5 }) };
  expect(withJob(withJob([], one), later)).toEqual([later]);
  expect(withJob([one], { ...one, job: job({ id: "k" }) })).toHaveLength(2);
});
