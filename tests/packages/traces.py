"""One span as OTLP, and requests of HTTP, by the standard library alone."""

import json
import os
import struct
import time
import urllib.error
import urllib.request

ANSWER_SECONDS_MAX = 10
POLL_SECONDS = 0.05


class Refused(Exception):
    """An answer other than 200."""


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, content):
    """A field with bytes or a text, or a time as fixed64."""
    if isinstance(content, int):
        return varint(number << 3 | 1) + struct.pack("<Q", content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def exported(name):
    """An ExportTraceServiceRequest with one span of this name."""
    now = time.time_ns()
    attribute = field(1, "input.value") + field(2, field(1, "2 + 2"))
    span = field(1, os.urandom(16)) + field(2, os.urandom(8)) + field(5, name)
    span += field(7, now - 1_000_000) + field(8, now) + field(9, attribute)
    return field(1, field(2, field(2, span)))


def request(url, body=None, headers=None):
    """Returns the body of an answer. Bytes and JSON are sent by POST."""
    headers = dict(headers or {})
    if isinstance(body, dict):
        body, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    asked = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=ANSWER_SECONDS_MAX) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise Refused(f"{url}: {error.code}: {error.read(400).decode(errors='replace')}") from error


def until(seconds_max, what, attempt):
    """Returns the first true result of an attempt. A server that does not serve yet is asked again."""
    end, last = time.monotonic() + seconds_max, None
    while time.monotonic() < end:
        try:
            if result := attempt():
                return result
        except (OSError, Refused) as error:
            last = error
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"{what} did not happen in {seconds_max} s; the last error: {last}")


class Assay:
    """A node as its clients see it."""

    def __init__(self, url, key):
        self.url = url
        self.headers = {"Authorization": f"Bearer {key}"}

    def export(self, name, project="install"):
        headers = self.headers | {"Content-Type": "application/x-protobuf", "x-bt-parent": f"project_name:{project}"}
        request(f"{self.url}/otel/v1/traces", exported(name), headers)
        return True

    def names(self, project="install"):
        query = f"SELECT span_attributes.name AS name FROM project_logs('{project}')"
        answer = request(f"{self.url}/btql", {"query": query}, self.headers)
        return {row["name"] for row in json.loads(answer)["data"]}

    def ready(self):
        return request(f"{self.url}/readyz")
