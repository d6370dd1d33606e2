"""The spans: made before anything is measured, the same ones as rows for Assay and as OTLP for the others.

A body is made once and sent many times. Where its ids differ from one sending to the next it has a mark, as long as
what takes its place; so a new body costs the client one replacement, and no id ever comes twice.
"""

import json
import random
import zlib
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SPANS_PER_REQUEST = 100
TRACE_SPANS = (6, 10)
SPAN_BYTES = 2048
# Bodies that differ in more than their ids: 50,000 spans, far apart enough for no compression to see two at once.
BODIES = 500
SEED = 1
BEGAN_NS = 1_795_000_000 * 10**9

# In ids: eight characters that no hexadecimal number has, and four bytes that no text has.
ROWS_MARK = b"<number>"
OTLP_MARK = b"\xff\xfe\xfd\xfc"

# Drawn with frequencies like those of real text: the nth is 1/n as frequent as the first.
WORDS = """the of to and a in is for that on it with as are be this was by from or an at which not have you has they
their its if can will but one all more when what there also may other how only after about into such each these first
two some would should than then between because before where over many most new while through during however within
customer order invoice account answer question model request document ticket agent product report payment service
refund policy user context summary message record database project release error contract address delivery shipment
subscription dataset experiment prompt response token budget meeting schedule campaign warehouse supplier manager
password device network server package feature discount receipt statement balance insurance claim appointment hospital
medicine recipe hotel flight passenger luggage airport station calendar reminder deadline estimate proposal chapter
translation language library article reference hypothesis measurement temperature pressure battery vehicle weather
season market price quantity inventory category review rating comment feedback complaint resolution transcript
parameter variable exception cluster replica latency throughput dashboard alert incident timeline regulation evidence
needs shows contains requires receives updates returns explains describes follows includes mentions confirms cancels
changes creates closes approves rejects replaces compares matches supports ignores keeps moves cites schedules resolves
usually already quickly carefully automatically recently probably directly eventually separately correctly explicitly
available previous second large small final pending complete missing recent detailed monthly annual external internal
public private urgent broken useful reliable simple hidden local remote similar different manual temporary average
unusual technical legal medical regional historical precise quarterly overdue refundable ambiguous permanent""".split()
WEIGHTS = [1 / rank for rank in range(1, len(WORDS) + 1)]

KINDS = ["LLM", "TOOL", "LLM", "RETRIEVER", "LLM", "TOOL", "LLM", "EVALUATOR", "LLM"]
NAMES = {"CHAIN": "answer_question", "LLM": "chat", "TOOL": "lookup_order", "RETRIEVER": "search", "EVALUATOR": "judge"}
MODELS = ["gpt-4o", "gpt-4o-mini", "claude-3-5-sonnet-20241022"]


@dataclass
class Step:
    """A span, before it takes either form; its ids without what makes them new each time."""

    trace: str
    span: str
    parent: str | None
    kind: str
    start_ns: int
    end_ns: int
    input: object
    output: object
    metadata: dict[str, object]
    tokens: tuple[int, int] | None

    def row(self) -> dict[str, object]:
        mark = ROWS_MARK.decode()
        metrics: dict[str, float] = {"start": self.start_ns / 1e9, "end": self.end_ns / 1e9}
        if self.tokens:
            prompt, completion = self.tokens
            metrics |= {"prompt_tokens": prompt, "completion_tokens": completion, "tokens": prompt + completion}
        return {
            "id": self.span + mark,
            "span_id": self.span + mark,
            "root_span_id": self.trace + mark,
            "span_parents": [self.parent + mark] if self.parent else None,
            "span_attributes": {"name": NAMES[self.kind], "type": self.kind.lower()},
            "input": self.input,
            "output": self.output,
            "metadata": self.metadata,
            "metrics": metrics,
        }

    def otlp(self) -> Span:
        """With the attributes of OpenInference, which both of the others read."""
        texts = {
            "openinference.span.kind": self.kind,
            "input.value": compact(self.input),
            "input.mime_type": "application/json",
            "output.value": compact(self.output),
            "output.mime_type": "application/json",
            "metadata": compact(self.metadata),
        }
        attributes = [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in texts.items()]
        if self.tokens:
            prompt, completion = self.tokens
            counts = {"prompt": prompt, "completion": completion, "total": prompt + completion}
            attributes += [
                KeyValue(key=f"llm.token_count.{key}", value=AnyValue(int_value=count)) for key, count in counts.items()
            ]
            model = AnyValue(string_value=str(self.metadata["model"]))
            attributes.append(KeyValue(key="llm.model_name", value=model))
        return Span(
            trace_id=bytes.fromhex(self.trace) + OTLP_MARK,
            span_id=bytes.fromhex(self.span) + OTLP_MARK,
            parent_span_id=bytes.fromhex(self.parent) + OTLP_MARK if self.parent else b"",
            name=NAMES[self.kind],
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=self.start_ns,
            end_time_unix_nano=self.end_ns,
            attributes=attributes,
        )


@dataclass
class Body:
    """A request in both forms, with its marks, and what it holds."""

    rows: bytes
    otlp: bytes
    # Ids of spans and of their traces.
    spans: list[tuple[str, str]]


class Load:
    """Requests by number, from 0 on."""

    def __init__(self) -> None:
        dice = random.Random(SEED)
        self.bodies = [made(steps_of_request(dice)) for _ in range(BODIES)]
        spans = BODIES * SPANS_PER_REQUEST
        self.row_bytes = sum(len(body.rows) for body in self.bodies) / spans
        self.otlp_bytes = sum(len(body.otlp) for body in self.bodies) / spans
        sample = b"".join(body.rows for body in self.bodies[:20])
        self.smaller = len(sample) / len(zlib.compress(sample, 1))

    def rows(self, number: int) -> bytes:
        return self.bodies[number % BODIES].rows.replace(ROWS_MARK, fresh(number).encode())

    def otlp(self, number: int) -> bytes:
        return self.bodies[number % BODIES].otlp.replace(OTLP_MARK, bytes.fromhex(fresh(number)))

    def spans(self, number: int) -> dict[str, str]:
        """The ids of the spans, in the order in which they are sent, each with that of its trace."""
        mark = fresh(number)
        return {span + mark: trace + mark for span, trace in self.bodies[number % BODIES].spans}


def fresh(number: int) -> str:
    """Eight hexadecimal digits, no two numbers' the same, and no order in them, as real ids have none."""
    return f"{number * 0x9E3779B1 % 2**32:08x}"


def made(steps: list[Step]) -> Body:
    rows = json.dumps({"events": [step.row() for step in steps]}, separators=(",", ":")).encode()
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name", value=AnyValue(string_value="shop-agent"))
    scope = resource.scope_spans.add()
    scope.scope.name = "shop"
    scope.spans.extend(step.otlp() for step in steps)
    otlp = request.SerializeToString()
    parents = sum(step.parent is not None for step in steps)
    # A mark anywhere else would change what is said, and one too few would let an id come twice.
    assert rows.count(ROWS_MARK) == 3 * len(steps) + parents, "marks in the rows"
    assert otlp.count(OTLP_MARK) == 2 * len(steps) + parents, "marks in the protobuf"
    return Body(rows, otlp, [(step.span, step.trace) for step in steps])


def steps_of_request(dice: random.Random) -> list[Step]:
    """Whole traces, each in the order in which its spans end: the root last, as exporters send them."""
    steps: list[Step] = []
    while len(steps) < SPANS_PER_REQUEST:
        left = SPANS_PER_REQUEST - len(steps)
        count = dice.randint(*TRACE_SPANS)
        if left - count < TRACE_SPANS[0]:
            count = left if left <= TRACE_SPANS[1] else left // 2
        steps += steps_of_trace(dice, count)
    return steps


def steps_of_trace(dice: random.Random, count: int) -> list[Step]:
    trace = hexadecimal(dice, 12)
    began = BEGAN_NS + dice.randrange(10**12)
    root = step(dice, trace, None, "CHAIN", began, began + dice.randint(3, 30) * 10**9)
    at, children = began, []
    for kind in KINDS[: count - 1]:
        lasted = (root.end_ns - began) // count
        children.append(step(dice, trace, root.span, kind, at, at + lasted))
        at += lasted
    return [*children, root]


def step(dice: random.Random, trace: str, parent: str | None, kind: str, start_ns: int, end_ns: int) -> Step:
    model = dice.choice(MODELS)
    metadata: dict[str, object] = {
        "model": model,
        "user_id": f"user_{dice.randrange(10**6)}",
        "environment": dice.choice(["production", "staging"]),
        "session": {"region": dice.choice(["eu-1", "us-2"]), "turn": dice.randint(1, 9)},
        "temperature": round(dice.random(), 2),
    }
    text = int(SPAN_BYTES * dice.uniform(0.9, 1.1)) - 590
    asked = [
        {"role": "system", "content": "You are a helpful assistant. Answer from the documents given, and name them."},
        {"role": "user", "content": words(dice, text * 6 // 10)},
    ]
    answered = {"role": "assistant", "content": words(dice, text * 4 // 10), "finish_reason": "stop"}
    tokens = (dice.randint(200, 4000), dice.randint(10, 900)) if kind == "LLM" else None
    return Step(trace, hexadecimal(dice, 4), parent, kind, start_ns, end_ns, asked, answered, metadata, tokens)


def words(dice: random.Random, size: int) -> str:
    return " ".join(dice.choices(WORDS, WEIGHTS, k=size // 5))[:size]


def hexadecimal(dice: random.Random, size: int) -> str:
    return dice.randbytes(size).hex()


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
