// Spans of OpenTelemetry's own exporters: in protobuf, in JSON, packed, and over gRPC; into a project that is made, under spans that
// the SDK handed over in slugs of both forms, and above spans of the SDK; sent again.

import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { OTLPTraceExporter as OverGrpc } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as AsJson } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as AsProtobuf } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { Metadata } from "@grpc/grpc-js";
import { extractTraceContextFromHeaders, flush, initLogger, startSpan } from "braintrust";
import { below, HEADERS, named, read, same, URL } from "./reading.mjs";

const [run] = process.argv.slice(2);
const projectName = `javascript-exporter-${run}`;
const logger = initLogger({ projectName });
const loggerId = (await logger.project).id;
const over = {
  protobuf: (headers) => new AsProtobuf({ url: `${URL}/otel/v1/traces`, headers }),
  packed: (headers) => new AsProtobuf({ url: `${URL}/otel/v1/traces`, headers, compression: "gzip" }),
  json: (headers) => new AsJson({ url: `${URL}/otel/v1/traces`, headers }),
  grpc: (headers) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name.toLowerCase(), value);
    return new OverGrpc({ url: process.env.ASSAY_OTLP_URL, metadata });
  },
};

/** Keeps what it hands on, and how that went. */
class Kept {
  constructor(exporter) {
    this.exporter = exporter;
    this.spans = [];
    this.codes = [];
  }
  export(spans, done) {
    this.spans.push(...spans);
    this.exporter.export(spans, (result) => {
      this.codes.push(result.code);
      done(result);
    });
  }
  shutdown() {
    return this.exporter.shutdown();
  }
  forceFlush() {
    return this.exporter.forceFlush?.();
  }
}

function traced(kind, parent) {
  const kept = new Kept(over[kind]({ ...HEADERS, "x-bt-parent": parent }));
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(kept)] });
  return { kept, provider, tracer: provider.getTracer("app", "1.2") };
}

const made = {};
for (const kind of Object.keys(over)) {
  const { kept, provider, tracer } = traced(kind, `project_name:${projectName}`);
  const root = tracer.startSpan(`${kind}-root`, { kind: SpanKind.SERVER, attributes: { "http.route": "/ask" } });
  const inside = trace.setSpan(context.active(), root);
  const chat = tracer.startSpan(`${kind}-chat`, { attributes: {
    "gen_ai.operation.name": "chat", "gen_ai.provider.name": "acme", "gen_ai.request.model": "m-1",
    "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 5,
    "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: "why ü?" }] }]),
    "braintrust.tags": ["a", "b"],
  } }, inside);
  chat.end();
  const failing = tracer.startSpan(`${kind}-failing`, {}, inside);
  failing.recordException(new Error("on purpose"));
  failing.setStatus({ code: SpanStatusCode.ERROR, message: "on purpose" });
  failing.end();
  root.end();
  await provider.forceFlush();
  // Sent again: nothing is added.
  await new Promise((done) => kept.export([...kept.spans], done));
  same(`${kind}: taken`, kept.codes, kept.codes.map(() => 0));
  made[kind] = root.spanContext();

  // Below a span of the SDK, as it is handed over.
  const span = logger.startSpan({ name: `${kind}-of-the-sdk` });
  const under = traced(kind, await span.export());
  const there = under.tracer.startSpan(`${kind}-there`);
  under.tracer.startSpan(`${kind}-inner`, {}, trace.setSpan(context.active(), there)).end();
  there.end();
  span.end();
  await under.provider.forceFlush();

  // And the SDK below a span of OpenTelemetry, by the headers that its propagators send.
  const { traceId, spanId } = root.spanContext();
  const headers = { traceparent: `00-${traceId}-${spanId}-01`, baggage: `braintrust.parent=project_id:${loggerId}` };
  startSpan({ name: `${kind}-back`, parent: extractTraceContextFromHeaders(headers) }).end();
  await Promise.all([provider.shutdown(), under.provider.shutdown()]);
}
await flush();

const rows = named(await read("project_logs", loggerId));
for (const [kind, ids] of Object.entries(made)) {
  const [root, chat, failing, sdk, there, inner, back] =
    ["root", "chat", "failing", "of-the-sdk", "there", "inner", "back"].map((name) => rows[`${kind}-${name}`]);
  same(`${kind}: root`, [root.root_span_id, root.span_id, root.is_root], [ids.traceId, ids.spanId, true]);
  below(chat, root);
  below(failing, root);
  same(`${kind}: chat`, [chat.span_attributes.type, chat.metadata.model, chat.metadata.provider], ["llm", "m-1", "acme"]);
  same(`${kind}: tokens`, ["prompt_tokens", "completion_tokens", "tokens"].map((name) => chat.metrics[name]), [7, 5, 12]);
  same(`${kind}: said`, [JSON.stringify(chat.input).includes("why ü?"), chat.tags], [true, ["a", "b"]]);
  same(`${kind}: failed`, failing.error.includes("on purpose"), true);
  below(there, sdk);
  below(inner, there);
  below(back, root);
}
same("rows", Object.keys(rows).length, Object.keys(over).length * 7);
console.log("exporter: ok");
