"""Exports over gRPC, by OpenTelemetry's own exporter and by hand: read back, sent again, refused, and told what is not stored."""

import json
import os
import sys

import grpc
import requests
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from reading import HEADERS, URL, fetch, same

URLS = os.environ["ASSAY_OTLP_URLS"].split(",")
KEY = {"authorization": HEADERS["Authorization"]}
run = sys.argv[1]


def exporter(at, parent, compression=None):
    return OTLPSpanExporter(endpoint=URLS[at % len(URLS)], insecure=True, headers={**KEY, "x-bt-parent": parent}, compression=compression)


def rows(project):
    found = requests.get(f"{URL}/v1/project", headers=HEADERS, params={"project_name": project}, timeout=60).json()["objects"]
    return fetch("project_logs", found[0]["id"]) if found else {}


# As they come from an application, plain and packed; each to another node, where there are several.
SPANS = 700
for at, (name, compression) in enumerate([("plain", None), ("packed", grpc.Compression.Gzip), ("other", None)]):
    project = f"grpc-{run}-{name}"
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter(at, f"project_name:{project}", compression)))
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("root") as root:
        for number in range(SPANS):
            with tracer.start_as_current_span(f"span {number}") as span:
                span.set_attributes({"gen_ai.prompt": f"why {number} ü?", "gen_ai.completion": "so " * 50})
    assert provider.force_flush()
    provider.shutdown()
    found = rows(project)
    trace_id, span_id = f"{root.get_span_context().trace_id:032x}", f"{root.get_span_context().span_id:016x}"
    same(f"{name}: rows", len(found), SPANS + 1)
    same(f"{name}: trace", {row["root_span_id"] for row in found.values()}, {trace_id})
    same(f"{name}: parents", {json.dumps(row["span_parents"]) for row in found.values()}, {"null", json.dumps([span_id])})
    named = {row["span_attributes"]["name"]: row for row in found.values()}
    same(f"{name}: input", named["span 699"]["input"], "why 699 ü?")

# Sent again: the same rows.
provider = TracerProvider()
kept = []


class Keeping(BatchSpanProcessor):
    def on_end(self, span):
        kept.append(span)
        super().on_end(span)


again = f"grpc-{run}-again"
provider.add_span_processor(Keeping(exporter(0, f"project_name:{again}")))
with provider.get_tracer("app").start_as_current_span("once"):
    pass
provider.shutdown()
same("again", exporter(1, f"project_name:{again}").export(kept), SpanExportResult.SUCCESS)
same("once", len(rows(again)), 1)

# By hand: what is answered, and what is refused and how.
channel = grpc.insecure_channel(URLS[0].removeprefix("http://"))
service = TraceServiceStub(channel)
SPAN = {
    "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "by hand",
    "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": "1544712661000000000",
}


def export(spans):
    """With ids as the messages have them, in bytes."""
    message = traces.ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for span in spans:
        one = scope.spans.add()
        one.trace_id, one.span_id = bytes.fromhex(span["traceId"]), bytes.fromhex(span["spanId"])
        one.name = span["name"]
        one.start_time_unix_nano, one.end_time_unix_nano = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    return message


def refused(call, message, metadata):
    try:
        call(message, metadata=list(metadata.items()), timeout=60)
    except grpc.RpcError as error:
        return error.code(), error.details(), dict(error.trailing_metadata() or ())
    raise AssertionError("it was taken")


to = {**KEY, "x-bt-parent": f"project_name:{again}"}
answer, call = service.Export.with_call(export([SPAN]), metadata=list(to.items()), timeout=60)
same("all", answer, traces.ExportTraceServiceResponse())
same("its id", len(dict(call.initial_metadata())["x-bt-internal-trace-id"]), 32)
answer = service.Export(export([SPAN, {**SPAN, "spanId": "00"}]), metadata=list(to.items()), timeout=60)
same("partly", (answer.partial_success.rejected_spans, len(rows(again))), (1, 2))
Code = grpc.StatusCode
same("no key", refused(service.Export, export([SPAN]), {"x-bt-parent": "project_name:x"})[0], Code.UNAUTHENTICATED)
same("another key", refused(service.Export, export([SPAN]), {**to, "authorization": "Bearer sk-no"})[0], Code.UNAUTHENTICATED)
code, said, _ = refused(service.Export, export([SPAN]), KEY)
same("no parent", (code, "the spans have no destination" in said), (Code.INVALID_ARGUMENT, True))
gone = {**KEY, "x-bt-parent": "experiment_id:11111111-2222-4333-8444-555555555555"}
same("not there", refused(service.Export, export([SPAN]), gone)[0], Code.NOT_FOUND)
other = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Other")
same("not served", refused(other, b"", to)[0], Code.UNIMPLEMENTED)
broken = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
same("no message", refused(broken, b"\xff\xff", to)[0], Code.INVALID_ARGUMENT)
code, said, _ = refused(broken, b"\0" * (21 << 20), to)
same("too large", (code, "larger than" in said), (Code.INVALID_ARGUMENT, True))
records = logs.ExportLogsServiceRequest()
records.resource_logs.add().scope_logs.add().log_records.add()
answer = LogsServiceStub(channel).Export(records, metadata=list(KEY.items()), timeout=60)
same("logs", answer.partial_success.rejected_log_records, 1)
answer = MetricsServiceStub(channel).Export(metrics.ExportMetricsServiceRequest(), metadata=list(KEY.items()), timeout=60)
same("metrics", answer, metrics.ExportMetricsServiceResponse())
print("over gRPC: ok")
