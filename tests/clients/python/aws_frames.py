"""Writes frames.json: messages of event streams, as botocore reads them.

botocore has a parser and no writer. The writer here is checked by the parser. Run it with botocore 1.44 installed:
    python frames.py > frames.json
"""

import datetime
import json
import struct
import zlib
from binascii import crc32

from botocore.eventstream import EventStreamBuffer

TEXT = {":message-type": "event", ":content-type": "application/json"}


def header(name, kind, value):
    name = name.encode()
    return struct.pack("!B", len(name)) + name + struct.pack("!B", kind) + value


def text(name, value):
    value = value.encode()
    return header(name, 7, struct.pack("!H", len(value)) + value)


def frame(headers, payload):
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", crc32(message))


def event(kind, body):
    names = {**TEXT, ":event-type": kind}
    return b"".join(text(*pair) for pair in names.items()), json.dumps(body).encode()


def exception(kind, body):
    names = {":message-type": "exception", ":content-type": "application/json", ":exception-type": kind}
    return b"".join(text(*pair) for pair in names.items()), json.dumps(body).encode()


ALL_TYPES = b"".join(
    [
        header("true", 0, b""),
        header("false", 1, b""),
        header("byte", 2, struct.pack("!b", -5)),
        header("short", 3, struct.pack("!h", -300)),
        header("int", 4, struct.pack("!i", 70_000)),
        header("long", 5, struct.pack("!q", -(2**40))),
        header("bytes", 6, struct.pack("!H", 3) + b"\x00\x01\xff"),
        text("text", "grüße"),
        header("time", 8, struct.pack("!q", 1_700_000_000_123)),
        header("uuid", 9, bytes(range(16))),
    ]
)

CASES = {
    "nothing": (b"", b""),
    "headers of all types": (ALL_TYPES, b"payload"),
    "only a payload": (b"", b"\x00" * 40),
    "messageStart": event("messageStart", {"role": "assistant"}),
    "contentBlockDelta": event(
        "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hé"}, "p": "abcdefghij"}
    ),
    "metadata": event(
        "metadata",
        {"usage": {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4}, "metrics": {"latencyMs": 12}},
    ),
    "chunk": event("chunk", {"bytes": "eyJ0eXBlIjoicGluZyJ9", "p": "abc"}),
    "throttlingException": exception("throttlingException", {"message": "Too many tokens"}),
    "error": (
        text(":message-type", "error") + text(":error-code", "InternalFailure") + text(":error-message", "broken"),
        b"",
    ),
}


def plain(value):
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value


def case(name, headers, payload):
    encoded = frame(headers, payload)
    buffer = EventStreamBuffer()
    buffer.add_data(encoded)
    (message,) = list(buffer)
    read = [[name, plain(value)] for name, value in message.headers.items()]
    return {"name": name, "frame": encoded.hex(), "headers": read, "payload": message.payload.hex()}


print(json.dumps([case(name, *parts) for name, parts in CASES.items()], indent=1, ensure_ascii=False))
