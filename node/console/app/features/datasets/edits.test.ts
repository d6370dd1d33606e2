// Tests of the edits: undo takes back, and what is written makes of the server's rows what is shown.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { DatasetRow } from "../../api/datasets";
import { FIELDS, isSame, type Field } from "./cells";
import { counted, edited, eventsOf, newRow, NO_HISTORY, valueOf, type EditAction, type History } from "./edits";

const base = (id: string): DatasetRow => ({ ...newRow(id), input: `input ${id}`, expected: 1, metadata: { a: 1 }, tags: ["t"], transaction: "1" });
const ROWS = ["a", "b", "c"].map(base);
const value = fc.oneof(fc.string({ maxLength: 3 }), fc.integer(), fc.constant(null), fc.constant("input a"), fc.dictionary(fc.string({ maxLength: 2 }), fc.integer()));
const field: fc.Arbitrary<Field> = fc.constantFrom(...FIELDS);
const cell = fc.record({ row: fc.constantFrom(...ROWS), field, value });

const action: fc.Arbitrary<EditAction> = fc.oneof(
  fc.array(cell, { maxLength: 3 }).map((cells) => ({
    kind: "set" as const,
    cells: cells.map(({ row, field: at, value: to }) => ({ id: row.id, base: row, field: at, value: to })),
  })),
  fc.uniqueArray(fc.constantFrom("x", "y", "z"), { maxLength: 2 }).map((ids) => ({
    kind: "add" as const,
    rows: ids.map((id) => ({ id, values: { input: id } })),
  })),
  fc.array(fc.constantFrom("a", "b", "x"), { maxLength: 2 }).map((ids) => ({ kind: "drop" as const, ids })),
  fc.constantFrom<EditAction>({ kind: "undo" }, { kind: "redo" }, { kind: "clear" }),
);

const run = (actions: readonly EditAction[], from: History = NO_HISTORY): History => actions.reduce(edited, from);

test("undo and redo lead back to the same edits", () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 12 }), action, (before, one) => {
      const start = run(before);
      const after = edited(start, one);
      if (one.kind === "undo" || one.kind === "redo" || after === start) return;
      const back = edited(after, { kind: "undo" });
      expect(back.present).toBe(start.present);
      expect(edited(back, { kind: "redo" }).present).toBe(after.present);
    }),
  );
});

test("a cell that is set back is not an edit any more", () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 10 }), (actions) => {
      for (const row of run(actions).present.rows.values()) {
        for (const [at, changed] of Object.entries(row.values)) {
          const known = FIELDS.find((one) => one === at);
          if (row.base !== null && known !== undefined) expect(isSame(row.base[known], changed)).toBe(false);
        }
      }
    }),
  );
});

/** What the server does with the rows of an insert. */
function stored(events: readonly Readonly<Record<string, unknown>>[]): ReadonlyMap<string, DatasetRow> {
  const rows = new Map(ROWS.map((row) => [row.id, row]));
  for (const event of events) {
    const id = String(event["id"]);
    const start = event["_is_merge"] === true ? (rows.get(id) ?? newRow(id)) : newRow(id);
    const values = Object.fromEntries(FIELDS.filter((one) => one in event).map((one) => [one, event[one]]));
    rows.set(id, { ...start, ...values });
  }
  return rows;
}

test("what is written makes the rows as they are shown, in one list", () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 12 }), (actions) => {
      const { present } = run(actions);
      const events = eventsOf(present);
      expect(new Set(events.map((event) => event["id"])).size).toBe(events.length);
      const rows = stored(events);
      for (const row of [...ROWS, ...present.added.map(newRow)]) {
        for (const one of FIELDS) expect(rows.get(row.id)?.[one] ?? null).toEqual(valueOf(row, present.rows.get(row.id), one) ?? null);
      }
      const { cells, rows: fresh } = counted(present);
      expect(cells + fresh > 0).toBe(present.rows.size > 0);
    }),
  );
});

test("what was edited while a save ran stays unsaved", () => {
  const first = run([{ kind: "set", cells: [{ id: "a", base: base("a"), field: "input", value: 1 }] }]);
  const during = edited(first, { kind: "set", cells: [{ id: "b", base: base("b"), field: "input", value: 2 }] });
  const after = edited(during, { kind: "saved", edits: first.present });
  expect([...after.present.rows.keys()]).toEqual(["b"]);
});
