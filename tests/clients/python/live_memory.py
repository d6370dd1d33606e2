"""A plugin of pytest for the SDK's own tests: what they take from its memory went through a server first.

The tests put rows into a logger in memory, and look at what they pop from it. With this every row is written to the server that
BRAINTRUST_API_URL names, read back, and its fields are those that were read. Names of projects that the tests make up are
projects of the server; `pytest -p live_memory <tests of the SDK>`.
"""

import json
import os

import requests
from braintrust import logger
from braintrust.bt_json import bt_dumps

URL, KEY = os.environ["ASSAY_URL"], os.environ["ASSAY_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}
# Of a row's own.
NAMES = {"project_id": "project", "experiment_id": "experiment", "dataset_id": "dataset"}
STORED = {
    "id", "span_id", "root_span_id", "span_parents", "span_attributes", "input", "output", "expected", "error", "scores", "metadata",
    "metrics", "tags", "context", "created", "origin",
}
popped = {"rows": 0, "fields": 0}
kept = {}


def ask(method, path, **body):
    answer = requests.request(method, URL + path, headers=HEADERS, timeout=60, **body)
    assert answer.status_code == 200, f"{method} {path}: {answer.status_code}: {answer.text}"
    return answer.json()


def real(kind, name):
    """The id of what the tests call so."""
    if (kind, name) not in kept:
        body = {"name": f"live-{name}"}
        if kind != "project":
            body["project_id"] = real("project", "of-the-tests")
        kept[kind, name] = ask("POST", f"/v1/{kind}", json=body)["id"]
    return kept[kind, name]


def placed(row):
    """The row in its real place, and what a query calls that."""
    for field, kind in NAMES.items():
        if row.get(field) is not None:
            row = {**row, field: real(kind, row[field])}
            family = "project_logs" if kind == "project" else kind
            return row, f"{family}('{row[field]}')"
    return row, None


def read(place, row_id):
    quoted = row_id.replace("'", "''")
    found = ask("POST", "/btql", json={"query": f"SELECT * FROM {place} WHERE id = '{quoted}'"})["data"]
    assert len(found) <= 1, found
    return found[0] if found else None


through_memory = logger._MemoryBackgroundLogger.pop


def pop(self):
    rows = through_memory(self)
    sent = [placed(dict(row)) for row in rows]
    if any(place is None for _, place in sent):
        return rows
    # As the SDK sends them: attachments are references by then.
    bodies = [json.loads(bt_dumps(logger._extract_attachments(row, []) or row)) for row, _ in sent]
    if bodies:
        ask("POST", "/logs3", data=json.dumps({"rows": bodies, "api_version": 2}))
    answered = []
    for row, body, (_, place) in zip(rows, bodies, sent, strict=True):
        found = read(place, row["id"])
        assert found or row.get("_object_delete"), f"{row['id']} is not there"
        popped["rows"] += 1
        back = {}
        for name, value in row.items():
            if found and name in STORED and json.loads(bt_dumps(value)) == body[name]:
                popped["fields"] += 1
                back[name] = found[name]
            else:
                back[name] = value
        answered.append(back)
    return answered


logger._MemoryBackgroundLogger.pop = pop


def pytest_runtest_call(item):
    """The tests' own fixture says that the server is another one."""
    os.environ["BRAINTRUST_APP_URL"] = URL


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"through {URL}: {popped['rows']} rows, {popped['fields']} fields read back")
