"""Three instrumentations of one library, each with its own words for the same call: OpenTelemetry's, OpenInference, OpenLLMetry.

What they instrument speaks to a model's provider that lives in this script and says always the same.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

import openai
import requests
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp
from opentelemetry.instrumentation.openai import OpenAIInstrumentor as OpenLlmetry
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor as OpenTelemetry
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from reading import HEADERS, URL, fetch, same

OTLP = os.environ["ASSAY_OTLP_URL"]
run = sys.argv[1]

ANSWER = {
    "id": "c-1", "object": "chat.completion", "created": 1, "model": "m-1-2026",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Bern ü."}}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
}
TOOLS = {**ANSWER, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
    "role": "assistant", "content": None,
    "tool_calls": [{"id": "t-1", "type": "function", "function": {"name": "lookup", "arguments": '{"of": "Bern"}'}}],
}}]}
CHUNKS = [
    {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1-2026", "choices": [
        {"index": 0, "delta": {"role": "assistant", "content": "Bern"}, "finish_reason": None}]},
    {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1-2026", "choices": [
        {"index": 0, "delta": {"content": " ü."}, "finish_reason": "stop"}]},
    {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1-2026", "choices": [], "usage": ANSWER["usage"]},
]


class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said, kind, status = json.dumps(TOOLS if asked.get("tools") else ANSWER), "application/json", 200
        if asked.get("stream"):
            said = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"
            kind = "text/event-stream"
        if asked["model"] == "broken":
            said, status = json.dumps({"error": {"message": "no such model", "type": "invalid_request_error"}}), 404
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(said.encode())))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_):
        pass


provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=provider.serve_forever, daemon=True).start()
client = openai.OpenAI(api_key="k", base_url=f"http://127.0.0.1:{provider.server_port}/v1", max_retries=0)
MESSAGES = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Capital of 🇨🇭?"}]
LOOKUP = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {"of": {"type": "string"}}}}}


def calls():
    ask = client.chat.completions.create
    ask(model="m-1", messages=MESSAGES, temperature=0.5, max_tokens=9)
    ask(model="m-1", messages=MESSAGES, tools=[LOOKUP])
    for _ in ask(model="m-1", messages=MESSAGES, stream=True, stream_options={"include_usage": True}):
        pass
    try:
        ask(model="broken", messages=MESSAGES)
    except openai.NotFoundError:
        return
    raise AssertionError("a provider's refusal is an error")


def exported(name, instrumentor, over):
    project = f"instruments-{run}-{name}"
    parent = {**HEADERS, "x-bt-parent": f"project_name:{project}"}
    if over is OverGrpc:
        exporter = OverGrpc(endpoint=OTLP, insecure=True, headers={key.lower(): value for key, value in parent.items()})
    else:
        exporter = OverHttp(endpoint=f"{URL}/otel/v1/traces", headers=parent)
    spans = TracerProvider()
    spans.add_span_processor(BatchSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=spans)
    try:
        with spans.get_tracer("app").start_as_current_span("request"):
            calls()
    finally:
        instrumentor.uninstrument()
        assert spans.force_flush()
        spans.shutdown()
    found = requests.get(f"{URL}/v1/project", headers=HEADERS, params={"project_name": project}, timeout=60).json()["objects"]
    return sorted(fetch("project_logs", found[0]["id"]).values(), key=lambda row: row["metrics"]["start"])


def texts(messages):
    """As some write them, with a text, and as others, in parts."""
    said = lambda one: one["content"] if "content" in one else "".join(part.get("content", "") for part in one["parts"])
    return [(one["role"], said(one)) for one in messages]


for name, instrumentor, over, has_messages in [
    # It says what was said in records of its log, which are not sent here.
    ("opentelemetry", OpenTelemetry(), OverGrpc, False),
    ("openinference", OpenInference(), OverHttp, True),
    ("openllmetry", OpenLlmetry(), OverGrpc, True),
]:
    root, said, tools, streamed, broken = exported(name, instrumentor, over)
    same(f"{name}: root", (root["span_attributes"]["name"], root["is_root"]), ("request", True))
    for row in (said, tools, streamed, broken):
        same(f"{name}: below", (row["span_parents"], row["root_span_id"]), ([root["span_id"]], root["root_span_id"]))
        same(f"{name}: call", (row["span_attributes"]["type"], row["metadata"]["provider"]), ("llm", "openai"))
    for row in (said, tools, streamed):
        same(f"{name}: tokens", [row["metrics"][key] for key in ("prompt_tokens", "completion_tokens", "tokens")], [11, 3, 14])
        same(f"{name}: model", (row["metadata"]["model"], row.get("error")), ("m-1", None))
    same(f"{name}: how", [said["metadata"][key] for key in ("temperature", "max_tokens")], [0.5, 9])
    same(f"{name}: broken", broken["metadata"]["model"], "broken")
    assert "no such model" in str(broken["error"]), broken["error"]
    if has_messages:
        for row in (said, tools, streamed, broken):
            same(f"{name}: asked", texts(row["input"]), [(one["role"], one["content"]) for one in MESSAGES])
        for row in (said, streamed):
            same(f"{name}: said", texts(row["output"]), [("assistant", "Bern ü.")])
        assert all(word in json.dumps(tools["output"]) for word in ("lookup", "Bern", "t-1")), tools["output"]
        assert "lookup" in json.dumps(tools["metadata"]["tools"]), tools["metadata"]
print("instruments: ok")
