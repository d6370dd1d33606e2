"""The cases that SDKs of all languages share: what each says of its spans holds for what is read back here.

ASSAY_CASES is the folder of the cases, `test/llm_span` of the public repository braintrustdata/braintrust-spec. None of them needs a
model: a provider that lives in this script answers the SDK's own clients, and spans of clients that it has none of are made as
the case says that they should be. Each span comes three ways: from the SDK, in one row, and from an exporter of OpenTelemetry.
"""

import base64
import dataclasses
import json
import os
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import braintrust
import requests
from braintrust.btx.span_fetcher import fetch_project_id, fetch_spans
from braintrust.btx import spec_executor, spec_loader
from braintrust.btx.spec_loader import FnMatcher, OrMatcher, StartsWithMatcher
from braintrust.btx.span_validator import _NAMED_MATCHERS, validate_spans
from reading import HEADERS, URL, ask, same

run = sys.argv[1]
PROJECT = f"cases-{run}"
ABSENT = "undefined_or_null"
os.environ["BRAINTRUST_PROJECT"] = PROJECT
os.environ.setdefault("BRAINTRUST_API_URL", URL)
# The cases are newer than the SDK's own list; what is to be absent is looked at in `fits`.
_NAMED_MATCHERS[ABSENT] = lambda value: value is None
loader = spec_loader._make_loader()
# A value that is another one each time.
loader.add_constructor("!gen", lambda loader, node: uuid.uuid4().hex)
spec_loader._make_loader = lambda: loader
specs = spec_loader.load_specs(os.environ["ASSAY_CASES"])
assert len(specs) >= 15, [spec.display_name for spec in specs]

# ---- A provider: OpenAI's two endpoints and Anthropic's. -----------------------------------------------------------------

USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 0}}
CALL = {"id": "t-1", "type": "function", "function": {"name": "get_weather", "arguments": '{"location": "Paris, France"}'}}
TEXT = "The capital of France is Paris."


def chat(asked):
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]} if asked.get("tools") else {"role": "assistant", "content": TEXT}
    reason = "tool_calls" if asked.get("tools") else "stop"
    around = {"id": "c-1", "created": 1, "model": asked["model"]}
    if not asked.get("stream"):
        return {**around, "object": "chat.completion", "usage": USAGE, "choices": [{"index": 0, "finish_reason": reason, "message": message, "logprobs": None}]}
    around["object"] = "chat.completion.chunk"
    words = [{"role": "assistant", "content": ""}, *({"content": f"{word} "} for word in TEXT.split())]
    chunks = [{**around, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in words]
    chunks.append({**around, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return [(None, chunk) for chunk in (*chunks, {**around, "choices": [], "usage": USAGE})] + [(None, "[DONE]")]


def responses(asked):
    usage = {"input_tokens": 11, "output_tokens": 9, "total_tokens": 20, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 5}}
    reasoning = {"id": f"rs_{uuid.uuid4().hex}", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Differences grow by two."}]}
    text = {"type": "output_text", "text": "n(n+1); the sum of ten is 440.", "annotations": [], "logprobs": []}
    message = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": f"resp_{uuid.uuid4().hex}", "object": "response", "created_at": 1, "status": "completed", "model": asked["model"],
        "output": [reasoning, message], "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
    }


def messages(asked):
    usage = {"input_tokens": 11, "output_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    cached = [block["cache_control"] for block in asked.get("system", []) if isinstance(block, dict) and "cache_control" in block]
    if cached:
        kind = "ephemeral_1h_input_tokens" if cached[0].get("ttl") == "1h" else "ephemeral_5m_input_tokens"
        usage |= {"cache_creation_input_tokens": 2000, "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0, kind: 2000}}
    message = {"id": "m-1", "type": "message", "role": "assistant", "model": asked["model"], "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    if not asked.get("stream"):
        return {**message, "content": [{"type": "text", "text": TEXT}]}
    events = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"{word} "}} for word in TEXT.split()),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


ANSWERS = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}


class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said, kind = ANSWERS[self.path.split("?")[0]](asked), "application/json"
        if isinstance(said, list):
            lines = [(f"event: {name}\n" if name else "") + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n" for name, data in said]
            body, kind = "".join(lines).encode(), "text/event-stream"
        else:
            body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=provider.serve_forever, daemon=True).start()
at = f"http://127.0.0.1:{provider.server_port}"
os.environ |= {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{at}/v1", "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": at}


# What this version of the SDK's client writes is not what the newest case wants, before anything is sent.
NOT_AS_CALLED = {"anthropic/attachments"}
messages_whole = spec_executor._execute_anthropic_messages


def messages_streamed(requests, client):
    """The SDK's own runner takes the stream for another one."""
    if not any(asked.get("stream") for asked in requests):
        return messages_whole(requests, client)
    for asked in requests:
        with client.messages.stream(**{name: value for name, value in asked.items() if name != "stream"}) as stream:
            for _ in stream:
                pass


spec_executor._execute_anthropic_messages = messages_streamed


def called(spec):
    """By the SDK's own client of the provider."""
    os.environ["BTX_PROVIDER"] = spec.provider
    root = spec_executor.execute_spec(spec, live=True)
    return fetch_spans(root, fetch_project_id(PROJECT), len(spec.expected_brainstore_spans))


# ---- Spans made as their case says. --------------------------------------------------------------------------------------


class Bytes:
    """An attachment that the case speaks of."""

    def __init__(self, reference):
        self.content_type = reference["content_type"]

    def sent(self):
        return braintrust.Attachment(data=base64.b64decode("iVBORw0KGgo="), filename="a.bin", content_type=self.content_type)


def is_absent(expected):
    return isinstance(expected, FnMatcher) and expected.expr == ABSENT


def made(expected):
    """Something that fits."""
    if isinstance(expected, OrMatcher):
        return made(expected.alternatives[0])
    if isinstance(expected, StartsWithMatcher):
        return f"{expected.prefix}-2026"
    if isinstance(expected, FnMatcher):
        known = {
            "is_non_negative_number": 0, "is_positive_number": 7, "is_non_empty_string": "so",
            "is_reasoning_message": [{"type": "summary_text", "text": "because"}],
        }
        return known.get(expected.expr, "440 in Paris")
    if isinstance(expected, dict):
        if expected.get("type") == "braintrust_attachment":
            return Bytes(expected)
        return {name: made(value) for name, value in expected.items() if not is_absent(value)}
    if isinstance(expected, list):
        return [made(one) for one in expected]
    return expected


def with_bytes(value, bytes_of):
    if isinstance(value, Bytes):
        return bytes_of(value)
    if isinstance(value, dict):
        return {name: with_bytes(one, bytes_of) for name, one in value.items()}
    return [with_bytes(one, bytes_of) for one in value] if isinstance(value, list) else value


def by_the_sdk(spec):
    logger = braintrust.init_logger(project=PROJECT)
    with logger.start_span(name=spec.name) as root:
        for expected in spec.expected_brainstore_spans:
            span = with_bytes(made(expected), Bytes.sent)
            attributes = dict(span.pop("span_attributes"))
            with root.start_span(name=attributes.pop("name", "call"), span_attributes=attributes) as one:
                one.log(**{name: value for name, value in span.items() if name != "context"}, context=span.get("context"))
    logger.flush()
    return fetch_spans(root.root_span_id, fetch_project_id(PROJECT), len(spec.expected_brainstore_spans))


def reference(one):
    return {"type": "braintrust_attachment", "filename": "a.bin", "content_type": one.content_type, "key": str(uuid.uuid4())}


def in_a_row(spec):
    project, root = fetch_project_id(PROJECT), uuid.uuid4().hex
    events = []
    for place, expected in enumerate(spec.expected_brainstore_spans):
        span = with_bytes(made(expected), reference)
        span["span_attributes"]["exec_counter"] = place
        events.append({**span, "root_span_id": root, "span_id": uuid.uuid4().hex[:16], "span_parents": ["a-root"]})
    ask("POST", f"/v1/project_logs/{project}/insert", events=events)
    return fetch_spans(root, project, len(events))


def by_an_exporter(spec):
    root, begin = uuid.uuid4().hex, time.time_ns()
    spans = []
    for place, expected in enumerate(spec.expected_brainstore_spans):
        span = with_bytes(made(expected), reference)
        attributes = span.pop("span_attributes")
        name = attributes.pop("name", "call")
        attributes["exec_counter"] = place
        said = {"span_attributes": attributes, "metadata": span.get("metadata"), "metrics": span.get("metrics")}
        named = {f"braintrust.{key}": json.dumps(value) for key, value in said.items()}
        named |= {f"braintrust.{key}_json": json.dumps(span[key]) for key in ("input", "output", "context") if key in span}
        spans.append({
            "traceId": root, "spanId": uuid.uuid4().hex[:16], "parentSpanId": "00f067aa0ba902b7", "name": name,
            "startTimeUnixNano": str(begin + place), "endTimeUnixNano": str(begin + place + 1000),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in named.items()],
        })
    export = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "app"}, "spans": spans}]}]}
    sent = requests.post(f"{URL}/otel/v1/traces", headers={**HEADERS, "x-bt-parent": f"project_name:{PROJECT}"}, json=export, timeout=60)
    same(f"{spec.display_name}: export", (sent.status_code, sent.json()), (200, {}))
    return fetch_spans(root, fetch_project_id(PROJECT), len(spans))


def without_absent(expected, actual):
    """Without what is to be absent, and is."""
    if not isinstance(expected, dict) or not isinstance(actual, dict):
        return expected
    left = {name: value for name, value in expected.items() if name in actual or not is_absent(value)}
    return {name: without_absent(value, actual.get(name)) for name, value in left.items()}


def fits(found, spec):
    found = [span for span in found if span["span_attributes"]["type"] == "llm"]
    found.sort(key=lambda span: span["span_attributes"].get("exec_counter", 0))
    wanted = [without_absent(one, span) for one, span in zip(spec.expected_brainstore_spans, found, strict=True)]
    validate_spans(found, dataclasses.replace(spec, expected_brainstore_spans=wanted))


by_the_sdk(specs[0])
checked, failed = 0, []
for spec in specs:
    ways = [by_the_sdk, in_a_row, by_an_exporter]
    if spec.provider in ("openai", "anthropic") and spec.display_name not in NOT_AS_CALLED:
        ways.insert(0, called)
    for way in ways:
        checked += 1
        try:
            fits(way(spec), spec)
        except Exception as error:
            failed.append(f"{spec.display_name} {way.__name__}: {type(error).__name__}: {str(error)[:3000]}")
assert not failed, "\n\n".join(failed)
print(f"cases of all: ok, {len(specs)} cases, {checked} ways")
