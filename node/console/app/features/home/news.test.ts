// Tests what the home says of changes since the last visit.
import fc from "fast-check";
import { expect, test } from "vitest";
import { daysOf, firstHour } from "./days";
import { kindCondition, kindOf, newKinds, percentText, periodsOf, rateChange, type ErrorText } from "./news";
import { readVisit, visitAt, writeVisit } from "./visits";

const MINUTE = 60_000;
const DAY = 86_400_000;

test("a visit goes on while somebody comes back soon, and its text keeps it", () => {
  const first = visitAt(null, 1000);
  expect(first).toEqual({ at: 1000, since: null });
  const soon = visitAt(first, 1000 + 5 * MINUTE);
  expect(soon).toEqual({ at: 1000 + 5 * MINUTE, since: null });
  const later = visitAt(soon, DAY);
  expect(later).toEqual({ at: DAY, since: soon.at });
  expect(visitAt(later, DAY + MINUTE).since).toBe(soon.at);
  const visits = fc.record({ at: fc.nat(), since: fc.option(fc.nat(), { nil: null }) });
  fc.assert(fc.property(visits, (visit) => void expect(readVisit(writeVisit(visit))).toEqual(visit)));
  expect(readVisit("soon")).toBeNull();
});

test("the period before is as long, errors are known for a week at least, and nothing is older than a month", () => {
  const now = 100 * DAY;
  expect(periodsOf(now - DAY, now)).toEqual({ since: now - DAY, before: now - 2 * DAY, known: now - 8 * DAY });
  expect(periodsOf(0, now)).toEqual({ since: now - 30 * DAY, before: now - 60 * DAY, known: now - 60 * DAY });
});

test("a rate has changed if that is more than chance", () => {
  const counts = (traces: number, failed: number) => ({ traces, failed });
  expect(rateChange("p", counts(1000, 10), counts(1000, 60))).toEqual({ project: "p", before: 0.01, since: 0.06 });
  expect(rateChange("p", counts(1000, 60), counts(1000, 10))).toEqual({ project: "p", before: 0.06, since: 0.01 });
  expect(rateChange("p", counts(100, 5), counts(100, 7))).toBeNull();
  expect(rateChange("p", counts(10, 0), counts(1000, 100))).toBeNull();
  expect(rateChange("p", counts(100, 0), counts(100, 0))).toBeNull();
  expect([0, 0.004, 0.0964, 0.13].map(percentText)).toEqual(["0 %", "0.4 %", "9.6 %", "13 %"]);
});

const error = (text: string, first: number, count = 1): ErrorText => ({ project: "p", text, first, count });

test("kinds of errors are new if no text of the kind was there before", () => {
  const id = "0129026e-3fd0-4c55-baf7-5d0c86763089";
  expect(kindOf(`Row ${id} took 12.5 ms at 0xff\nmore`)).toBe("Row # took # ms at #");
  const texts = [error("Late: 12 s", 5), error("Late: 9 s", 11), error("Gone: 1", 12, 2), error("Gone: 22", 13), error("It's over", 14)];
  const kinds = newKinds(texts, 10);
  expect(kinds.map(({ texts: [shown], count }) => [shown, count])).toEqual([["Gone: 1", 3], ["It's over", 1]]);
  expect(kinds.map(kindCondition)).toEqual(["starts_with(to_string(error), 'Gone: ')", "to_string(error) = 'It''s over'"]);
});

test("the hours of a project stand at their places", () => {
  const first = firstHour(Date.parse("2026-05-04T10:30:00Z"));
  expect(new Date(first).toISOString()).toBe("2026-05-03T11:00:00.000Z");
  const hours = [
    { p: "a", t: "2026-05-03T11:00:00Z", n: 3, e: 1, c: 0.5 },
    { p: "a", t: "2026-05-04T10:00:00Z", n: 4, e: 0, c: null },
    { p: "a", t: "2026-05-04T11:00:00Z", n: 9, e: 9, c: null },
  ];
  const day = daysOf(hours, [{ p: "a", p95: 1.5 }], first).get("a");
  expect(day?.traces).toEqual([3, ...Array(22).fill(0), 4]);
  expect(day?.failed[0]).toBe(1);
  expect([day?.p95, day?.cost]).toEqual([1500, 0.5]);
});
