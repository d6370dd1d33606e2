"""Attachments small and large, by rows that come before their bytes; rows too large for one request; refusals."""

import os
import sys
import uuid

import braintrust
import requests
from reading import HEADERS, URL, fetch, same

project = f"python-attachments-{sys.argv[1]}"
logger = braintrust.init_logger(project=project)

small = b"hello"
large = os.urandom(3 << 20) + b"end"
with logger.start_span(name="with files", id="files") as span:
    span.log(
        input={"file": braintrust.Attachment(data=small, filename="a ü.txt", content_type="text/plain")},
        output=[braintrust.Attachment(data=large, filename="b.bin", content_type="application/octet-stream")],
    )
    span.log(metadata={"empty": braintrust.Attachment(data=b"", filename="none", content_type="text/plain")})
logger.flush()


def asked(key, **more):
    return requests.get(f"{URL}/attachment", headers=HEADERS, params={"key": key, **more}, timeout=60)


def downloaded(key):
    answer = asked(key, org_id="")
    assert answer.status_code == 200, answer.text
    same("status", answer.json()["status"], {"upload_status": "done"})
    return answer.json()["downloadUrl"]


row = fetch("project_logs", logger.project.id)["files"]
first, second, empty = row["input"]["file"], row["output"][0], row["metadata"]["empty"]
same("reference", (first["type"], first["filename"], first["content_type"]), ("braintrust_attachment", "a ü.txt", "text/plain"))
# Without a credential, from wherever the address is used.
answer = requests.get(downloaded(first["key"]), timeout=60)
same("small", (answer.content, answer.headers["Content-Type"]), (small, "text/plain"))
assert "UTF-8''a%20%C3%BC.txt" in answer.headers["Content-Disposition"], answer.headers
url = downloaded(second["key"])
same("large", requests.get(url, timeout=60).content, large)
for said, part in [("bytes=0-9", large[:10]), ("bytes=-3", b"end"), (f"bytes={1 << 20}-", large[1 << 20 :]), ("bytes=262100-262200", large[262100:262201])]:
    answer = requests.get(url, headers={"Range": said}, timeout=60)
    same(said, (answer.status_code, answer.content), (206, part))
same("beyond", requests.get(url, headers={"Range": f"bytes={len(large)}-"}, timeout=60).status_code, 416)
same("empty", requests.get(downloaded(empty["key"]), timeout=60).content, b"")

# The SDK reads them back itself.
dataset = braintrust.init_dataset(project=project, name="files")
dataset.insert(id="d", input=braintrust.Attachment(data=large, filename="d.bin", content_type="image/png"), expected=1)
dataset.flush()
again = braintrust.init_dataset(project=project, name="files")
[read] = list(again)
same("through the SDK", (read["input"].data, read["input"].status()["upload_status"]), (large, "done"))

# A key that nobody knows, one that is named and not uploaded, one that failed.
same("unknown", asked(str(uuid.uuid4())).status_code, 404)
key = str(uuid.uuid4())
named = {"type": "braintrust_attachment", "filename": "f", "content_type": "text/plain", "key": key}
answer = requests.post(f"{URL}/v1/dataset/{dataset.id}/insert", headers=HEADERS, json={"events": [{"id": "n", "input": {"deep": [named]}, "expected": None}]}, timeout=60)
same("a row before its file", answer.status_code, 200)
same("named", asked(key).json()["status"], {"upload_status": "uploading"})
said = {"key": key, "org_id": "", "status": {"upload_status": "error", "error_message": "no network"}}
same("said", requests.post(f"{URL}/attachment/status", headers=HEADERS, json=said, timeout=60).status_code, 200)
same("failed", asked(key).json()["status"], {"upload_status": "error", "error_message": "no network"})
# It is uploaded after all, twice: the last one counts.
for text in [b"one", b"another"]:
    answer = requests.post(f"{URL}/attachment", headers=HEADERS, json={"key": key, "filename": "f", "content_type": "text/plain", "org_id": ""}, timeout=60)
    assert answer.status_code == 200, answer.text
    upload = answer.json()
    assert upload["signedUrl"].startswith("http"), upload
    answer = requests.put(upload["signedUrl"], data=text, headers={**upload["headers"], "Content-Encoding": "gzip"}, timeout=60)
    same("as it came", (answer.status_code, answer.json()["bytes"]), (200, len(text)))
same("the last", requests.get(downloaded(key), timeout=60).content, b"another")
# An address is for what it was given out for.
same("read with an address to write", requests.get(upload["signedUrl"], timeout=60).status_code, 401)
same("write with an address to read", requests.put(downloaded(key), data=b"x", timeout=60).status_code, 401)
same("changed", requests.get(downloaded(key)[:-1] + "~", timeout=60).status_code, 401)
same("without a credential", requests.get(f"{URL}/attachment", params={"key": key}, timeout=60).status_code, 401)
same("elsewhere", asked(None, url="https://example.com/x").json()["downloadUrl"], "https://example.com/x")

# Rows that one request is too small for.
text = "ü" * (4 << 20)
with logger.start_span(name="too large", id="huge") as span:
    span.log(input=text, output="o")
logger.flush()
row = fetch("project_logs", logger.project.id)["huge"]
same("overflow", (row["input"] == text, row["output"]), (True, "o"))
answer = requests.post(f"{URL}/logs3/overflow", headers=HEADERS, json={"content_type": "application/json", "size_bytes": 10, "rows": []}, timeout=60)
said = answer.json()
same("method", (answer.status_code, said["method"]), (200, "PUT"))
reference = {"rows": {"type": "logs3_overflow", "key": said["key"]}, "api_version": 2}
post = lambda: requests.post(f"{URL}/logs3", headers=HEADERS, json=reference, timeout=60)
same("before the bytes", post().status_code, 400)
body = '{"rows": [{"id": "late", "input": 1, "project_id": "%s", "log_id": "g"}], "api_version": 2}' % logger.project.id
same("upload", requests.put(said["signedUrl"], data=body, headers=said["headers"], timeout=60).status_code, 200)
once, twice = post(), post()
same("consumed", (once.status_code, once.json(), twice.json()), (200, {"row_ids": ["late"]}, {"row_ids": ["late"]}))
same("read back", fetch("project_logs", logger.project.id)["late"]["input"], 1)

# Code of functions.
answer = requests.post(f"{URL}/function/code", headers=HEADERS, json={"org_id": "", "runtime_context": {"runtime": "node", "version": "20"}}, timeout=60)
same("code", (answer.status_code, set(answer.json())), (200, {"url", "bundleId"}))
same("sent", requests.put(answer.json()["url"], data=b"\x1f\x8b", headers={"Content-Encoding": "gzip"}, timeout=60).status_code, 200)
print("attachments: ok")
