// Reads rows back over plain HTTP, beside the SDK, and compares them.

import assert from "node:assert/strict";

// Without BRAINTRUST_API_URL the SDK goes where the login answer sends it; the test goes where it was told.
export const URL = process.env.BRAINTRUST_API_URL || process.env.BRAINTRUST_APP_URL;
export const HEADERS = { Authorization: `Bearer ${process.env.BRAINTRUST_API_KEY}` };
const PAGES_MAX = 100;

export async function ask(method, path, body) {
  const answer = await fetch(`${URL}${path}`, {
    method,
    headers: { ...HEADERS, "Content-Type": "application/json" },
    body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${method} ${path}: ${answer.status}: ${text}`);
  return JSON.parse(text);
}

/** All rows of an object by id; an id that comes twice is wrong. */
export async function read(family, id, body = {}) {
  const rows = {};
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { events, cursor } = await ask("POST", `/v1/${family}/${id}/fetch`, body);
    for (const row of events) {
      assert.ok(!(row.id in rows), `${row.id} came twice`);
      rows[row.id] = row;
    }
    if (!cursor) return rows;
    body = { ...body, cursor };
  }
  throw new Error("a fetch that does not end");
}

export function same(what, found, wanted) {
  assert.deepStrictEqual(found, wanted, `${what}: wanted ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`);
}

/** By the names of their spans. */
export function named(rows) {
  return Object.fromEntries(Object.values(rows).map((row) => [row.span_attributes.name, row]));
}

export function below(row, parent) {
  const name = row.span_attributes.name;
  same(`${name} below`, [row.span_parents, row.root_span_id, row.is_root], [[parent.span_id], parent.root_span_id, false]);
}

export function comments(row) {
  return (row.comments ?? []).map((comment) => comment.comment.text).sort();
}

/** All that an iterator of the SDK gives. */
export async function all(iterator) {
  const found = [];
  for await (const one of iterator) found.push(one);
  return found;
}
