// Reads rows back over plain HTTP, beside the SDK.

export const run = process.argv[2];
// Without BRAINTRUST_API_URL the SDK goes where the login answer sends it; the test goes where it was told.
export const url = process.env.BRAINTRUST_API_URL ?? process.env.BRAINTRUST_APP_URL;
export const headers = { Authorization: `Bearer ${process.env.BRAINTRUST_API_KEY}`, "Content-Type": "application/json" };

export async function called(method, path, body) {
  const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status}: ${text}`);
  return JSON.parse(text);
}

export async function projectId(name) {
  return (await called("GET", `/v1/project?project_name=${name}`)).objects[0].id;
}

// All rows of an object by id; an id that comes twice is wrong.
export async function fetched(family, id) {
  const rows = new Map();
  for (let cursor = undefined; ; ) {
    const page = await called("POST", `/v1/${family}/${id}/fetch`, { cursor });
    for (const row of page.events) {
      if (rows.has(row.id)) throw new Error(`${row.id} came twice`);
      rows.set(row.id, row);
    }
    if (!page.cursor) return rows;
    cursor = page.cursor;
  }
}

export async function all(rows) {
  const found = [];
  for await (const row of rows) found.push(row);
  return found;
}
