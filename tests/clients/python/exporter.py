"""Spans of OpenTelemetry's own exporter: into a project that is made, an experiment, under a span of the SDK; sent again; refused."""

import json
import sys

import braintrust
import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.trace import Status, StatusCode
from reading import HEADERS, URL, fetch, same

project = f"python-exporter-{sys.argv[1]}"


class Kept(OTLPSpanExporter):
    """Keeps what it sent, and how that went."""

    def export(self, spans):
        self.sent = getattr(self, "sent", []) + list(spans)
        self.result = super().export(spans)
        return self.result


def tracer(parent, compression=Compression.NoCompression):
    exporter = Kept(
        endpoint=f"{URL}/otel/v1/traces", headers={**HEADERS, "x-bt-parent": parent}, compression=compression
    )
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("instrumented", "1.2"), exporter


# A project that is not there yet.
named, exporter = tracer(f"project_name:{project}", Compression.Gzip)
with named.start_as_current_span("request") as root:
    root.set_attribute("http.route", "/ask")
    with named.start_as_current_span("chat m-1") as child:
        child.set_attributes({
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "acme", "gen_ai.request.model": "m-1",
            "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 5,
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "why ü?"}]}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "so"}]}]),
            "braintrust.tags": ["a", "b"],
        })
    try:
        with named.start_as_current_span("failing"):
            raise ValueError("on purpose")
    except ValueError:
        pass
same("exported", exporter.result, SpanExportResult.SUCCESS)
ids = {span.name: span.context for span in exporter.sent}
logs = requests.get(f"{URL}/v1/project", headers=HEADERS, params={"project_name": project}, timeout=60).json()["objects"][0]


def by_name(family, object_id):
    return {row["span_attributes"]["name"]: row for row in fetch(family, object_id).values()}


rows = by_name("project_logs", logs["id"])
same("spans", set(rows), {"request", "chat m-1", "failing"})
root, chat, failing = rows["request"], rows["chat m-1"], rows["failing"]
trace_id, span_id = f"{ids['request'].trace_id:032x}", f"{ids['request'].span_id:016x}"
same("root", (root["root_span_id"], root["span_id"], root["span_parents"], root["is_root"]), (trace_id, span_id, None, True))
same("child", (chat["root_span_id"], chat["span_parents"], chat["is_root"]), (trace_id, [span_id], False))
same("type", (chat["span_attributes"]["type"], chat["metadata"]["model"], chat["metadata"]["provider"]), ("llm", "m-1", "acme"))
same("tokens", [chat["metrics"][name] for name in ("prompt_tokens", "completion_tokens", "tokens")], [7, 5, 12])
assert "why ü?" in json.dumps(chat["input"], ensure_ascii=False) and "so" in json.dumps(chat["output"]), chat
same("tags", chat["tags"], ["a", "b"])
assert "ValueError" in failing["error"] and "on purpose" in failing["error"], failing["error"]
assert 0 <= root["metrics"]["end"] - root["metrics"]["start"] < 60, root["metrics"]
same("rest", root["metadata"]["http.route"], "/ask")
same("origin", root["context"]["span_origin"]["instrumentation"]["name"], "instrumented")

# Sent again: nothing is added.
same("again", OTLPSpanExporter(endpoint=f"{URL}/otel/v1/traces", headers={**HEADERS, "x-bt-parent": f"project_id:{logs['id']}"}).export(exporter.sent), SpanExportResult.SUCCESS)
same("still", set(by_name("project_logs", logs["id"])), {"request", "chat m-1", "failing"})

# Under a span of the SDK, and into an experiment that a span names itself.
logger = braintrust.init_logger(project=project)
experiment = braintrust.init(project=project, experiment="spans")
with logger.start_span(name="of the SDK") as span:
    below, exporter = tracer(span.export())
    with below.start_as_current_span("below"):
        with below.start_as_current_span("aside") as aside:
            aside.set_attribute("braintrust.parent", f"experiment_id:{experiment.id}")
    same("below", exporter.result, SpanExportResult.SUCCESS)
logger.flush()
rows = by_name("project_logs", logs["id"])
same("parent", (rows["below"]["span_parents"], rows["below"]["root_span_id"]), ([rows["of the SDK"]["span_id"]], rows["of the SDK"]["root_span_id"]))
same("experiment", set(by_name("experiment", experiment.id)), {"aside"})


def posted(body, parent=f"project_name:{project}", headers=None, signal="traces"):
    headers = {**HEADERS, "Content-Type": "application/json", **({"x-bt-parent": parent} if parent else {}), **(headers or {})}
    return requests.post(f"{URL}/otel/v1/{signal}", headers=headers, data=body if isinstance(body, bytes) else json.dumps(body), timeout=60)


# JSON, of which a part cannot be taken.
good = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "in JSON", "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": 1544712661000000000}
export = {"resourceSpans": [{"scopeSpans": [{"spans": [good, {**good, "spanId": "00"}]}]}]}
answer = posted(export)
same("partly", (answer.status_code, answer.json()["partialSuccess"]["rejectedSpans"]), (200, "1"))
same("in JSON", by_name("project_logs", logs["id"])["in JSON"]["metrics"], {"start": 1544712660, "end": 1544712661})
same("all", (posted({"resourceSpans": []}).status_code, posted({}).json()), (200, {}))
same("no parent", posted(export, parent=None).status_code, 400)
same("not there", posted(export, parent="experiment_id:11111111-2222-4333-8444-555555555555").status_code, 404)
same("no parent at all", posted(export, parent="nothing").status_code, 400)
same("no JSON", (posted(b"{").status_code, posted(b"{").json()["code"]), (400, 3))
same("no gzip", posted(b"{}", headers={"Content-Encoding": "gzip"}).status_code, 400)
same("another encoding", posted(b"{}", headers={"Content-Encoding": "br"}).status_code, 415)
refused = posted(b"\xff\xff", headers={"Content-Type": "application/x-protobuf"})
same("no protobuf", (refused.status_code, refused.headers["content-type"], refused.content[:2]), (400, "application/x-protobuf", b"\x08\x03"))
logged = posted({"resourceLogs": [{"scopeLogs": [{"logRecords": [{}, {}]}]}]}, signal="logs")
same("logs are not stored", (logged.status_code, logged.json()["partialSuccess"]["rejectedLogRecords"]), (200, "2"))
same("without a key", requests.post(f"{URL}/otel/v1/traces", data=b"", timeout=60).status_code, 401)
print("exporter: ok")
