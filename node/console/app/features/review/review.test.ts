// The logic of review: addresses, answers, scores, positions, agreement, queues, a sitting, and the editor.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { OwnReview, ReviewItem } from "../../api/review";
import type { Score } from "../../api/reviewScores";
import { readAddress } from "../../lib/address";
import { readPage } from "../../lib/pages";
import { agreementOf } from "./agreement";
import { answersOf, bodyOf, chosen, missing, picked, targetOf, type Answer } from "./answers";
import { clausesOf, editedOf, faultIn, NEW_SCORE, recordOf } from "./editing";
import { allOf, builtInQueues, isAllSent, isDone, openOf, tallyOf, waitingFor } from "./queues";
import { moved } from "./rank";
import { askedOf, groupsOf, isFor, ordered } from "./scores";
import { again, back, begin, finish, goTo, nextAfter, paceOf, reopen, skip, waitingIn } from "./sitting";
import { readReviewState, writeReviewState, type ReviewState } from "./url";

const scoreOf = (part: Partial<Score>): Score => ({
  id: part.name ?? "id",
  name: "Tone",
  description: "",
  type: "slider",
  categories: [],
  destination: "",
  isMultiple: false,
  users: [],
  groups: [],
  clauses: { row: [], below: [], trace: [] },
  kinds: [],
  position: null,
  created: "",
  config: {},
  ...part,
});

const OPTIONS = [
  { name: "Good", value: 1 },
  { name: "Bad", value: 0 },
];
const SLIDER = scoreOf({ name: "Quality" });
const SINGLE = scoreOf({ name: "Tone", type: "categorical", categories: OPTIONS });
const LABEL = scoreOf({ name: "Label", type: "categorical", categories: OPTIONS, destination: "expected" });
const LABELS = scoreOf({ name: "Labels", type: "categorical", categories: OPTIONS, destination: "expected", isMultiple: true });
const NOTE = scoreOf({ name: "Note", type: "free-form" });
const DEEP = scoreOf({ name: "Deep", type: "free-form", destination: "metadata.review.note" });
const ALL = [SLIDER, SINGLE, LABEL, LABELS, NOTE, DEEP];

const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);

describe("addresses", () => {
  const words = fc.string({ minLength: 1 }).filter(isWellFormed);
  const state: fc.Arbitrary<ReviewState> = fc.record({ organization: words, project: words }).chain((place) =>
    fc.oneof(
      fc.constant<ReviewState>({ ...place, at: "queues" }),
      fc.constant<ReviewState>({ ...place, at: "scores" }),
      fc
        .record({ queue: words.filter((word) => word !== "scores"), row: fc.string().filter(isWellFormed) })
        .map((queue): ReviewState => ({ ...place, at: "queue", ...queue })),
    ),
  );
  test("are read as they were written", () => {
    fc.assert(
      fc.property(state, (one) => {
        const address = readAddress(writeReviewState(one));
        const place = address === null ? null : readPage(address);
        expect(place === null ? null : readReviewState(place)).toEqual(one);
      }),
    );
  });
  test("of more parts are none", () => {
    const place = { organization: "acme", project: "demo", rest: ["pending", "more"], query: new URLSearchParams() };
    expect(readReviewState(place)).toBeNull();
  });
});

describe("answers", () => {
  test("are read as they were written", () => {
    const answer: Readonly<Record<string, fc.Arbitrary<Answer | undefined>>> = {
      Quality: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
      Tone: fc.constantFrom(undefined, 0, 1),
      Label: fc.constantFrom(undefined, "Good", "Bad"),
      Labels: fc.option(fc.uniqueArray(fc.constantFrom("Good", "Bad"), { minLength: 1 }), { nil: undefined }),
      Note: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
      Deep: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
    };
    fc.assert(
      fc.property(fc.record(answer), fc.subarray(ALL), (given, scores) => {
        const answers = new Map<string, Answer>();
        for (const { id } of scores) if (given[id] !== undefined) answers.set(id, given[id]);
        const { scores: numbers = {}, expected = null, metadata = {} } = bodyOf(scores, answers, new Map());
        expect(answersOf(scores, { scores: numbers, expected, metadata })).toEqual(answers);
      }),
    );
  });
  test("stand where their scores say", () => {
    const answers = new Map<string, Answer>([["Quality", 0.5], ["Label", "Good"], ["Note", "fine"], ["Deep", "very"]]);
    expect(bodyOf([SLIDER, LABEL, NOTE, DEEP], answers, new Map())).toEqual({
      scores: { Quality: 0.5 },
      expected: "Good",
      metadata: { Note: "fine", review: { note: "very" } },
    });
    expect(bodyOf([LABEL, LABELS], new Map<string, Answer>([["Labels", ["Bad"]]]), new Map()).expected).toEqual({ Labels: ["Bad"] });
    expect(targetOf(scoreOf({ type: "slider", destination: "expected" }))).toEqual({ in: "scores" });
  });
  test("that were taken away are null, and others are left out", () => {
    const before = new Map<string, Answer>([["Quality", 1], ["Label", "Good"]]);
    expect(bodyOf(ALL, new Map(), before)).toEqual({ scores: { Quality: null }, expected: null });
    expect(bodyOf(ALL, new Map(), new Map())).toEqual({});
  });
  test("are chosen by digits, and taken away by the same digit", () => {
    expect([1, 5, 9].map((digit) => picked(SLIDER, undefined, digit))).toEqual([0, 0.5, 1]);
    expect(picked(SLIDER, 0.5, 5)).toBeNull();
    expect(picked(SINGLE, undefined, 2)).toBe(0);
    expect(picked(SINGLE, 0, 2)).toBeNull();
    expect(picked(SINGLE, undefined, 3)).toBeUndefined();
    expect(picked(LABELS, ["Good"], 2)).toEqual(["Good", "Bad"]);
    expect(chosen(LABELS, ["Good"], "Good")).toBeNull();
    expect(picked(NOTE, undefined, 1)).toBeUndefined();
  });
  test("are missing where they are empty", () => {
    expect(missing(ALL, new Map<string, Answer>([["Quality", 0], ["Note", ""], ["Labels", []], ["Tone", 1]]))).toEqual([LABEL, LABELS, NOTE, DEEP]);
  });
  test("with names like those of prototypes are ordinary", () => {
    const odd = scoreOf({ name: "__proto__", type: "free-form" });
    const body = bodyOf([odd], new Map<string, Answer>([["__proto__", "x"]]), new Map());
    expect(answersOf([odd], { scores: {}, expected: null, metadata: body.metadata ?? {} })).toEqual(new Map([["__proto__", "x"]]));
  });
});

describe("scores", () => {
  const groups = [
    { id: "inner", name: "", users: ["ann"], groups: [] },
    { id: "outer", name: "", users: [], groups: ["inner"] },
    { id: "round", name: "", users: [], groups: ["round"] },
  ];
  test("are for those whom they name, by groups of groups too", () => {
    expect(groupsOf(groups, "ann")).toEqual(new Set(["inner", "outer"]));
    expect(isFor(scoreOf({ groups: ["outer"] }), "ann", groupsOf(groups, "ann"))).toBe(true);
    expect(isFor(scoreOf({ users: ["ben"] }), "ann", groupsOf(groups, "ann"))).toBe(false);
    expect(isFor(scoreOf({}), "cy", new Set())).toBe(true);
  });
  test("are asked for by kind and type", () => {
    const scores = [scoreOf({ name: "b", position: "0|b00000:" }), scoreOf({ name: "a", position: "0|a00000:" }), scoreOf({ name: "w", type: "weighted" }), scoreOf({ name: "d", kinds: ["dataset"] })];
    expect(askedOf(scores, "project_logs", "ann", []).map(({ name }) => name)).toEqual(["a", "b"]);
  });
  test("without a position come last, the oldest first", () => {
    const scores = [scoreOf({ name: "new", created: "2" }), scoreOf({ name: "old", created: "1" }), scoreOf({ name: "placed", position: "0|z00000:" })];
    expect(ordered(scores).map(({ name }) => name)).toEqual(["placed", "old", "new"]);
  });
});

describe("positions", () => {
  test("move an element to another place, and write no more than has changed", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.nat(39), fc.nat(39), (count, one, other) => {
        const [from, to] = [one % count, other % count];
        const placed = Array.from({ length: count }, (_, index) => ({ id: String(index), position: null }));
        const changes = moved(placed, from, to);
        const wanted = placed.map(({ id }) => id).filter((_, index) => index !== from);
        wanted.splice(to, 0, String(from));
        expect([...changes].sort((a, b) => (a.position < b.position ? -1 : 1)).map(({ id }) => id)).toEqual(wanted);
        const back = moved(changes, to, from);
        expect(back.length).toBe(from === to ? 0 : Math.abs(from - to) + 1);
      }),
    );
    expect(moved([{ id: "a", position: null }], 0, 1)).toEqual([]);
  });
});

describe("agreement", () => {
  const rated = (rows: readonly (readonly (number | string)[])[]) =>
    rows.flatMap((values, row) => values.map((value) => ({ of: String(row), value })));
  test("is that of Krippendorff's own example", () => {
    const rows = [[1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4], [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1], [3]];
    expect(agreementOf(rated(rows), false).alpha).toBeCloseTo(0.743, 3);
    expect(agreementOf(rated(rows), true).alpha).toBeCloseTo(0.849, 3);
    expect(agreementOf(rated(rows), true).rows).toBe(11);
  });
  test("counts equal pairs and means their differences", () => {
    const found = agreementOf(rated([[0, 1], [0.5, 0.5], [1]]), true);
    expect([found.rows, found.equal, found.difference]).toEqual([2, 0.5, 0.5]);
    expect(agreementOf(rated([["a", "b"], ["a", "a"]]), false)).toMatchObject({ rows: 2, equal: 0.5, difference: null });
  });
  test("is nothing without pairs, and unknown where all is the same", () => {
    expect(agreementOf([], true)).toEqual({ rows: 0, equal: null, difference: null, alpha: null });
    expect(agreementOf(rated([[1, 1], [1, 1]]), true)).toMatchObject({ equal: 1, difference: 0, alpha: null });
  });
  test("is the same as by all pairs", () => {
    const value = fc.integer({ min: 0, max: 8 }).map((one) => one / 8);
    fc.assert(
      fc.property(fc.array(fc.array(value, { minLength: 2, maxLength: 5 }), { minLength: 1, maxLength: 8 }), (rows) => {
        const found = agreementOf(rated(rows), true);
        const pairs = rows.flatMap((values) => values.flatMap((a, i) => values.flatMap((b, j) => (i === j ? [] : [[a, b] as const]))));
        const mean = pairs.reduce((sum, [a, b]) => sum + Math.abs(a - b), 0) / pairs.length;
        expect(found.difference).toBeCloseTo(mean, 9);
        expect(found.equal).toBeCloseTo(pairs.filter(([a, b]) => a === b).length / pairs.length, 9);
      }),
    );
  });
});

describe("queues", () => {
  const item = (id: string): ReviewItem => ({ id, objectId: "p", spanId: `span ${id}`, root: id, name: id });
  const own = (isSubmitted: boolean): OwnReview => ({ scores: {}, expected: null, metadata: {}, root: "", isSubmitted });
  test("have the conditions of their rows", () => {
    const [assigned] = builtInQueues("o'neil");
    if (assigned === undefined) throw new Error("no queue");
    expect(allOf(assigned)).toContain("INCLUDES 'o''neil'");
    expect(openOf({ ...assigned, filter: "a OR b", isRootOnly: true })).toMatch(/^\(?\(a OR b\) AND .*is_root.*'REJECTED'\)\)$/);
  });
  test("wait for those who have sent no review", () => {
    const read = { items: [item("a"), item("b"), item("c")], counts: new Map([["PENDING", 3], ["APPROVED", 2]]) };
    const mine = new Map([["span a", own(true)], ["span b", own(false)]]);
    expect(waitingFor(read, mine).map(({ id }) => id)).toEqual(["b", "c"]);
    expect(tallyOf(read, mine)).toEqual({ all: 5, done: 3, waiting: 2, isAbout: false });
    expect(tallyOf({ ...read, counts: new Map([[null, 10]]) }, mine)).toEqual({ all: 10, done: 1, waiting: 9, isAbout: true });
  });
  test("are done by any of the words for it", () => {
    expect([null, "PENDING", "STARTED", "COMPLETE", "COMPLETED", "APPROVED", "REJECTED"].filter(isDone)).toHaveLength(4);
    expect([isAllSent([], []), isAllSent(["a"], ["b"]), isAllSent(["a"], ["a", "b"])]).toEqual([true, false, true]);
  });
});

describe("a sitting", () => {
  test("goes through the rows, and back", () => {
    let sitting = begin(["a", "b", "c", "d"], "");
    expect(sitting.at).toBe("a");
    sitting = skip(finish(sitting));
    expect([sitting.at, waitingIn(sitting)]).toEqual(["c", 3]);
    sitting = back(sitting);
    expect(sitting.at).toBe("b");
    sitting = finish(sitting);
    sitting = finish(finish(sitting));
    expect([sitting.at, waitingIn(sitting), sitting.skipped.size]).toEqual([null, 0, 0]);
    expect(back(sitting).at).toBe("d");
  });
  test("begins with a row that does not wait, and goes on with the first", () => {
    expect(finish(begin(["a", "b"], "x")).at).toBe("a");
    expect(begin([], "").at).toBeNull();
  });
  test("shows a row again whose review was not saved", () => {
    const end = finish(begin(["a"], ""));
    expect(reopen(end, "a").at).toBe("a");
    const on = finish(begin(["a", "b"], ""));
    expect([reopen(on, "a").at, nextAfter(reopen(on, "a"), "b")]).toEqual(["b", "a"]);
  });
  test("returns to what was skipped", () => {
    const end = skip(skip(begin(["a", "b"], "")));
    expect([end.at, again(end).at]).toEqual([null, "a"]);
    expect(goTo(end, "b").at).toBe("b");
  });
  test("has the pace of its median, without pauses", () => {
    expect(paceOf([1000])).toBeNull();
    expect(paceOf([1000, 3000])).toBe(2000);
    expect(paceOf([1000, 2000, 9000, 900_000])).toBe(2000);
  });
});

describe("the editor", () => {
  test("keeps what it does not know", () => {
    const score = scoreOf({ name: "Tone", type: "categorical", categories: OPTIONS, config: { online: { x: 1 }, destination: null } });
    expect(recordOf(editedOf(score), score)).toMatchObject({ name: "Tone", categories: OPTIONS, config: { online: { x: 1 }, destination: null, visibility: null, condition: null } });
  });
  test("writes each type in its form", () => {
    const categories = [{ name: "A", value: "2" }, { name: " ", value: "" }, { name: "B", value: "1" }];
    expect(recordOf({ ...NEW_SCORE, name: " x ", type: "weighted", categories }, null)).toMatchObject({ name: "x", categories: { A: 2, B: 1 } });
    expect(recordOf({ ...NEW_SCORE, name: "x", type: "minimum", categories }, null)).toMatchObject({ categories: ["A", "B"] });
    expect(recordOf({ ...NEW_SCORE, name: "x" }, null)).toMatchObject({ categories: null });
  });
  test("says what is wrong", () => {
    expect(faultIn(NEW_SCORE, [])).toBe("Enter a name first.");
    expect(faultIn({ ...NEW_SCORE, name: "x" }, ["x"])).toBe("There is a score x already.");
    expect(faultIn({ ...NEW_SCORE, name: "x", type: "categorical" }, [])).toBe("Enter an option first.");
    expect(faultIn({ ...NEW_SCORE, name: "x", type: "categorical", categories: [{ name: "a", value: "2" }] }, [])).toBe("Each value is a number from 0 to 1.");
    expect(faultIn({ ...NEW_SCORE, name: "x", type: "categorical", categories: [{ name: "a", value: "" }] }, [])).toBe("Each value is a number from 0 to 1.");
    expect(faultIn({ ...NEW_SCORE, name: "x", type: "weighted", categories: [{ name: "a", value: "2" }] }, [])).toBeNull();
  });
  test("takes an expression from each line", () => {
    expect(clausesOf(" a = 1\n\n b = 2 ")).toEqual(["a = 1", "b = 2"]);
  });
});
