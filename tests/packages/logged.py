"""Logs one span by an SDK, as its users do: logged.py braintrust|opentelemetry."""

import sys


def braintrust():
    from braintrust import init_logger

    logger = init_logger(project="install")
    with logger.start_span(name="by braintrust") as span:
        span.log(input="2 + 2", output="4")
    logger.flush()


def opentelemetry():
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    with provider.get_tracer("install").start_as_current_span("by opentelemetry"):
        pass
    provider.shutdown()


{"braintrust": braintrust, "opentelemetry": opentelemetry}[sys.argv[1]]()
