"""Reads rows back over plain HTTP, beside the SDK, and compares them."""

import os

import requests

# Without BRAINTRUST_API_URL the SDK goes where the login answer sends it; the test goes where it was told.
URL = os.environ.get("BRAINTRUST_API_URL") or os.environ["BRAINTRUST_APP_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['BRAINTRUST_API_KEY']}"}
PAGES_MAX = 100


def fetch(family, object_id, **body):
    """All rows of an object by id; an id that comes twice is wrong."""
    rows = {}
    for _ in range(PAGES_MAX):
        answer = requests.post(f"{URL}/v1/{family}/{object_id}/fetch", headers=HEADERS, json=body, timeout=60)
        assert answer.status_code == 200, f"{answer.status_code}: {answer.text}"
        page = answer.json()
        for row in page["events"]:
            assert row["id"] not in rows, f"{row['id']} came twice"
            rows[row["id"]] = row
        if not page.get("cursor"):
            return rows
        body["cursor"] = page["cursor"]
    raise AssertionError("a fetch that does not end")


def ask(method, path, **body):
    """What the SDK has no function for."""
    answer = requests.request(method, f"{URL}{path}", headers=HEADERS, json=body, timeout=60)
    assert answer.status_code == 200, f"{method} {path}: {answer.status_code}: {answer.text}"
    return answer.json()


def same(what, found, wanted):
    assert found == wanted, f"{what}: wanted {wanted!r}, found {found!r}"


def comments(row):
    return sorted(comment["comment"]["text"] for comment in row.get("comments") or [])
