"""Spans by Phoenix's unmodified `register()`, over HTTP and over gRPC, read back through our API."""

import json
import os
import sys
import urllib.request

from phoenix.otel import register

run = sys.argv[1]
URL, KEY = os.environ["ASSAY_URL"], os.environ["PHOENIX_API_KEY"]


def ours(query):
    body = json.dumps({"query": query, "fmt": "json"}).encode()
    request = urllib.request.Request(
        f"{URL}/btql", body, {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


endpoints = [f"{URL}/v1/traces"] + [url for url in os.environ.get("ASSAY_OTLP_URLS", "").split(",") if url][:1]
for place, endpoint in enumerate(endpoints):
    project = f"phoenix {run} {place}"
    protocol = "http/protobuf" if place == 0 else "grpc"
    provider = register(
        project_name=project, endpoint=endpoint, protocol=protocol, set_global_tracer_provider=False, verbose=False
    )
    tracer = provider.get_tracer("shop")
    with tracer.start_as_current_span(
        "answer", openinference_span_kind="llm", attributes={"llm.model_name": "gpt-4o", "llm.token_count.prompt": 3}
    ) as span:
        span.set_input("hi")
        span.set_output("hello")
    provider.force_flush()
    rows = ours(f"select: * | from: project_logs('{project}')")
    found = [(row["input"], row["output"], row["span_attributes"]["type"], row["metadata"]["model"]) for row in rows]
    if found != [("hi", "hello", "llm", "gpt-4o")]:
        raise SystemExit(f"{protocol}: {found}")
    if rows[0]["metrics"]["prompt_tokens"] != 3:
        raise SystemExit(f"{protocol}: {rows[0]['metrics']}")
