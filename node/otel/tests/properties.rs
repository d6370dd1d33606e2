//! Property tests of exports: both encodings result in the same rows, and nothing panics.

use assay_node_otel::proto::any_value::Value as Any;
use assay_node_otel::proto::{
    AnyValue, ArrayValue, Event, ExportTraceServiceRequest, InstrumentationScope, KeyValue, KeyValueList, Link,
    Resource, ResourceSpans, ScopeSpans, Span, Status,
};
use assay_node_otel::{Encoding, Limits, Parent, Signal, count, decode, encode_response};
use assay_storage_model::ObjectKind;
use assay_storage_model::event::{PrepareContext, prepare};
use base64::Engine as _;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use serde_json::{Value, json};

/// Names that are read, including parts of lists.
const NAMES: [&str; 34] = [
    "braintrust.input_json",
    "braintrust.output",
    "braintrust.metadata",
    "braintrust.metrics",
    "braintrust.scores",
    "braintrust.tags",
    "braintrust.context_json",
    "braintrust.span_attributes",
    "braintrust.parent",
    "braintrust.otel.preserve_attributes",
    "gen_ai.operation.name",
    "gen_ai.input.messages",
    "gen_ai.system_instructions",
    "gen_ai.prompt",
    "gen_ai.prompt.0.content",
    "gen_ai.prompt.0.tool_calls.0.name",
    "gen_ai.prompt.1.content.x",
    "gen_ai.usage.input_tokens",
    "gen_ai.event.content",
    "openinference.span.kind",
    "llm.input_messages.0.message.contents.0.message_content.image",
    "llm.input_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.output_messages.1.message.content",
    "llm.invocation_parameters",
    "retrieval.documents.0.document.metadata",
    "input.value",
    "input.mime_type",
    "traceloop.span.kind",
    "traceloop.entity.output",
    "llm.request.functions.0.parameters",
    "ai.operationId",
    "ai.prompt.tools",
    "ai.response.toolCalls",
    "exception.stacktrace",
];

const EVENTS: [&str; 5] = [
    "exception",
    "gen_ai.choice",
    "gen_ai.user.message",
    "gen_ai.content.prompt",
    "gen_ai.client.inference.operation.details",
];

/// Texts with a meaning for the reader.
const TEXTS: [&str; 9] =
    ["{\"role\":\"user\"}", "[1,[2]]", "\"a\"", "{", "chat", "LLM", "true", "project_id:p", "[{\"type\":\"text\"}]"];

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,12}", prop::sample::select(&TEXTS[..]).prop_map(str::to_owned)]
}

fn values() -> impl Strategy<Value = Option<AnyValue>> {
    let leaf = prop_oneof![
        texts().prop_map(Any::String),
        any::<bool>().prop_map(Any::Bool),
        any::<i64>().prop_map(Any::Int),
        any::<f64>().prop_map(Any::Double),
        vec(any::<u8>(), 0..9).prop_map(Any::Bytes),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |within| {
        let values = vec(prop::option::of(within.clone()).prop_map(|value| AnyValue { value }), 0..4);
        let pair =
            (texts(), within).prop_map(|(key, value)| KeyValue { key, value: Some(AnyValue { value: Some(value) }) });
        prop_oneof![
            values.prop_map(|values| Any::Array(ArrayValue { values })),
            vec(pair, 0..4).prop_map(|values| Any::List(KeyValueList { values })),
        ]
    });
    prop::option::of(prop::option::of(value).prop_map(|value| AnyValue { value }))
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let name = prop_oneof![4 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => texts()];
    vec((name, values()).prop_map(|(key, value)| KeyValue { key, value }), 0..12)
}

fn ids(bytes: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => vec(any::<u8>(), bytes), 1 => Just(vec![0; bytes])]
}

fn spans() -> impl Strategy<Value = Span> {
    let event =
        (any::<u64>(), prop_oneof![prop::sample::select(&EVENTS[..]).prop_map(str::to_owned), texts()], attributes())
            .prop_map(|(time_unix_nano, name, attributes)| Event { time_unix_nano, name, attributes });
    let link = (ids(16), ids(8), attributes()).prop_map(|(trace_id, span_id, attributes)| Link {
        trace_id,
        span_id,
        attributes,
    });
    let status = prop::option::of((texts(), 0..3_i32).prop_map(|(message, code)| Status { message, code }));
    let ids = (ids(16), ids(8), prop_oneof![Just(Vec::new()), ids(8)]);
    let rest = (vec(event, 0..3), vec(link, 0..2), status);
    (ids, texts(), 0..6_i32, any::<(u64, u64)>(), attributes(), rest, any::<(u32, u32, u32)>()).prop_map(
        |(ids, name, kind, times, attributes, rest, dropped)| Span {
            trace_id: ids.0,
            span_id: ids.1,
            parent_span_id: ids.2,
            trace_state: String::new(),
            name,
            kind,
            start_time_unix_nano: times.0,
            end_time_unix_nano: times.1,
            attributes,
            dropped_attributes_count: dropped.0,
            events: rest.0,
            dropped_events_count: dropped.1,
            links: rest.1,
            dropped_links_count: dropped.2,
            status: rest.2,
        },
    )
}

fn exports() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scope = prop::option::of((texts(), texts()).prop_map(|(name, version)| InstrumentationScope { name, version }));
    let scopes = vec((scope, vec(spans(), 0..3)).prop_map(|(scope, spans)| ScopeSpans { scope, spans }), 0..3);
    let resource = prop::option::of(attributes().prop_map(|attributes| Resource { attributes }));
    let resources = (resource, scopes).prop_map(|(resource, scope_spans)| ResourceSpans { resource, scope_spans });
    vec(resources, 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

/// Encodes an export as JSON, independently of the reader. `snake` selects snake case for names.
fn to_json(export: &ExportTraceServiceRequest, snake: bool) -> Value {
    let name = |camel: &str| {
        let mut name = String::new();
        for letter in camel.chars() {
            if snake && letter.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(if snake { letter.to_ascii_lowercase() } else { letter });
        }
        name
    };
    let resources = export.resource_spans.iter().map(|resource| {
        let scopes = resource.scope_spans.iter().map(|scope| {
            let spans: Vec<Value> = scope.spans.iter().map(|span| span_json(span, &name)).collect();
            let about = scope.scope.as_ref().map(|scope| json!({"name": scope.name, "version": scope.version}));
            json!({"scope": about, "spans": spans})
        });
        let about =
            resource.resource.as_ref().map(|resource| json!({"attributes": pairs_json(&resource.attributes, &name)}));
        json!({"resource": about, name("scopeSpans"): scopes.collect::<Vec<_>>()})
    });
    json!({name("resourceSpans"): resources.collect::<Vec<_>>()})
}

fn span_json(span: &Span, name: &impl Fn(&str) -> String) -> Value {
    let events = span.events.iter().map(|event| {
        json!({name("timeUnixNano"): event.time_unix_nano, "name": event.name, "attributes": pairs_json(&event.attributes, name)})
    });
    let links = span.links.iter().map(|link| {
        json!({name("traceId"): hex(&link.trace_id), name("spanId"): hex(&link.span_id), "attributes": pairs_json(&link.attributes, name)})
    });
    let status =
        span.status.as_ref().map(|status| json!({"message": status.message, "code": status.code, "more": [{}]}));
    json!({
        name("traceId"): hex(&span.trace_id),
        name("spanId"): hex(&span.span_id).to_uppercase(),
        name("parentSpanId"): hex(&span.parent_span_id),
        "name": span.name,
        "kind": span.kind,
        name("startTimeUnixNano"): span.start_time_unix_nano.to_string(),
        name("endTimeUnixNano"): span.end_time_unix_nano,
        "attributes": pairs_json(&span.attributes, name),
        name("droppedAttributesCount"): span.dropped_attributes_count,
        "events": events.collect::<Vec<_>>(),
        name("droppedEventsCount"): span.dropped_events_count.to_string(),
        "links": links.collect::<Vec<_>>(),
        name("droppedLinksCount"): span.dropped_links_count,
        "status": status,
    })
}

fn pairs_json(pairs: &[KeyValue], name: &impl Fn(&str) -> String) -> Value {
    let pair =
        |pair: &KeyValue| json!({"key": pair.key, "value": pair.value.as_ref().map(|value| value_json(value, name))});
    pairs.iter().map(pair).collect()
}

fn value_json(value: &AnyValue, name: &impl Fn(&str) -> String) -> Value {
    let Some(value) = &value.value else { return json!({}) };
    match value {
        Any::String(text) => json!({name("stringValue"): text}),
        Any::Bool(flag) => json!({name("boolValue"): flag}),
        Any::Int(number) if number % 2 == 0 => json!({name("intValue"): number}),
        Any::Int(number) => json!({name("intValue"): number.to_string()}),
        Any::Double(number) if number.is_nan() => json!({name("doubleValue"): "NaN"}),
        Any::Double(number) if number.is_infinite() => {
            json!({name("doubleValue"): if *number > 0.0 { "Infinity" } else { "-Infinity" }})
        }
        Any::Double(number) => json!({name("doubleValue"): number}),
        Any::Array(array) => {
            json!({name("arrayValue"): {"values": array.values.iter().map(|value| value_json(value, name)).collect::<Vec<_>>()}})
        }
        Any::List(list) => json!({name("kvlistValue"): {"values": pairs_json(&list.values, name)}}),
        Any::Bytes(bytes) => json!({name("bytesValue"): base64::engine::general_purpose::STANDARD.encode(bytes)}),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

proptest! {
    #[test]
    fn both_encodings_are_the_same_rows(export in exports(), snake in any::<bool>()) {
        let limits = Limits::default();
        let spans: usize = export.resource_spans.iter().flat_map(|one| &one.scope_spans).map(|one| one.spans.len()).sum();
        let text = to_json(&export, snake).to_string();
        let bytes = export.encode_to_vec();
        let parent = Parent::parse("project_id:p").expect("a parent");
        let of_bytes = decode(&bytes, Encoding::Protobuf, limits).expect("decodes").rows(Some(parent.clone()));
        let of_text = decode(text.as_bytes(), Encoding::Json, limits).expect("decodes").rows(Some(parent));
        prop_assert_eq!(of_bytes.taken.len() + of_bytes.rejected.len(), spans);
        for one in &of_bytes.taken {
            prop_assert!(one.parent.is_some());
            prop_assert!(depth(&one.row) <= 64, "rows are of at most 64 levels");
        }
        prop_assert_eq!(&of_bytes, &of_text);
        for one in of_bytes.taken {
            let mut new_id = || panic!("rows have ids");
            let mut context = PrepareContext { now_micros: 0, new_id: &mut new_id };
            let prepared = prepare(ObjectKind::ProjectLogs, one.index, one.row, &mut context);
            prop_assert!(prepared.is_ok(), "{:?}", prepared);
        }
        for (encoding, body) in [(Encoding::Protobuf, &bytes[..]), (Encoding::Json, text.as_bytes())] {
            prop_assert_eq!(count(body, encoding, Signal::Traces), Ok(spans as u64));
            prop_assert_eq!(encode_response(&[], encoding).len(), if encoding == Encoding::Json { 2 } else { 0 });
        }
    }

    #[test]
    fn bytes_of_any_kind_are_an_export_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn an_export_with_bytes_changed_is_one_or_an_error(export in exports(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        for mut bytes in [export.encode_to_vec(), to_json(&export, false).to_string().into_bytes()] {
            for (place, byte) in changes.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            read_all(&bytes);
        }
    }
}

fn read_all(bytes: &[u8]) {
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        if let Ok(export) = decode(bytes, encoding, Limits::default()) {
            export.rows(None);
        }
        for signal in [Signal::Traces, Signal::Logs, Signal::Metrics] {
            let _ = count(bytes, encoding, signal);
        }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn text(key: &str, text: String) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(Any::String(text)) }) }
}

fn span(number: u8) -> Span {
    Span { trace_id: vec![1; 16], span_id: vec![number; 8], ..Span::default() }
}

fn export_of(spans: Vec<Span>) -> Vec<u8> {
    let scope_spans = vec![ScopeSpans { scope: None, spans }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { resource: None, scope_spans }] }.encode_to_vec()
}

#[test]
fn a_span_beyond_a_limit_is_refused_alone() {
    let limits = Limits { attributes: 2, events: 2, links: 2, value_depth: 2, ..Limits::default() };
    let nested = |levels: usize| {
        let value = (0..levels).fold(Any::Bool(true), |within, _| {
            Any::Array(ArrayValue { values: vec![AnyValue { value: Some(within) }] })
        });
        KeyValue { key: "deep".to_owned(), value: Some(AnyValue { value: Some(value) }) }
    };
    let with = |number: u8, attributes: usize, events: usize, links: usize, levels: usize, name: usize| {
        let mut all: Vec<KeyValue> = (1..attributes).map(|at| text(&at.to_string(), String::new())).collect();
        all.push(KeyValue { key: "d".repeat(name), ..nested(levels) });
        let event = Event { attributes: vec![nested(levels)], ..Event::default() };
        Span { attributes: all, events: vec![event; events], links: vec![Link::default(); links], ..span(number) }
    };
    let spans = vec![
        with(1, 2, 2, 2, 2, 1024),
        with(2, 3, 0, 0, 0, 1),
        with(3, 1, 3, 0, 0, 1),
        with(4, 1, 0, 3, 0, 1),
        with(5, 1, 0, 0, 3, 1),
        with(6, 1, 0, 0, 0, 1025),
    ];
    let rows = decode(&export_of(spans), Encoding::Protobuf, limits).expect("decodes").rows(None);
    let taken: Vec<usize> = rows.taken.iter().map(|one| one.index).collect();
    assert_eq!(taken, [0]);
    let said: Vec<_> = rows.rejected.iter().map(|one| (one.index, one.why.as_str())).collect();
    let expected = [
        (1, "it has 3 attributes; the maximum is 2"),
        (2, "it has 3 events; the maximum is 2"),
        (3, "it has 3 links; the maximum is 2"),
        (4, "the attribute \"d\" is nested more than 2 levels"),
        (5, "the name of an attribute has more than 1024 bytes"),
    ];
    assert_eq!(said, expected);
}

#[test]
fn large_attributes_of_a_resource_are_not_repeated_without_end() {
    let rows_of = |attribute: usize, spans: u8| {
        let resource = Resource { attributes: vec![text("large", "x".repeat(attribute))] };
        let scope_spans = vec![ScopeSpans { scope: None, spans: (1..=spans).map(span).collect() }];
        let resource_spans = vec![ResourceSpans { resource: Some(resource), scope_spans }];
        let export = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        decode(&export, Encoding::Protobuf, Limits::default()).expect("decodes").rows(None)
    };
    assert_eq!(rows_of(1 << 20, 60).taken.len(), 60);
    let many = rows_of(1 << 20, 70);
    assert_eq!((many.taken.len(), many.rejected.len()), (0, 70));
    assert!(many.rejected[0].why.contains("attributes of their resource"), "{}", many.rejected[0].why);
}

#[test]
fn json_as_deep_as_its_reader_goes_is_a_row_that_can_be_stored() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let attributes = vec![
        text("braintrust.input_json", deep(48)),
        text("braintrust.metadata", format!("{{\"a\":{}}}", deep(47))),
        text("llm.input_messages.0.a.b.c.d.e.f.g.h.i.j.k", deep(48)),
        text("llm.tools.0.tool.json_schema", deep(48)),
        text("braintrust.output_json", deep(49)),
    ];
    let spans = vec![Span { attributes, ..span(1) }];
    let rows = decode(&export_of(spans), Encoding::Protobuf, Limits::default()).expect("decodes").rows(None);
    let row = &rows.taken[0].row;
    assert!(depth(row) <= 64, "{}", depth(row));
    assert_eq!(depth(&row["input"]), 48);
    assert_eq!(row.get("output"), None, "deeper than what is read: it stays text");
    assert_eq!(row["metadata"]["braintrust.output_json"], json!(deep(49)));
}

/// Measures the speed of one core: `cargo test --release -p assay-node-otel -- --ignored --nocapture speed`.
#[test]
#[ignore = "a measurement, on demand"]
fn speed_of_decoding_and_mapping() {
    const SPANS: usize = 5_000;
    let content = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let spans: Vec<Span> = (0..SPANS)
        .map(|number| {
            let mut attributes: Vec<KeyValue> =
                (0..20).map(|at| text(&format!("app.attribute.{at}"), "some value".to_owned())).collect();
            let plain = [
                ("gen_ai.operation.name", "chat"),
                ("gen_ai.request.model", "gpt-4o"),
                ("gen_ai.provider.name", "openai"),
            ];
            attributes.extend(plain.map(|(key, value)| text(key, value.to_owned())));
            attributes.push(text("gen_ai.input.messages", json!([{"role": "user", "content": content}]).to_string()));
            attributes
                .push(text("gen_ai.output.messages", json!([{"role": "assistant", "content": content}]).to_string()));
            Span {
                span_id: (number as u64 + 1).to_be_bytes().to_vec(),
                attributes,
                start_time_unix_nano: 1 << 60,
                ..span(1)
            }
        })
        .collect();
    let bytes = export_of(spans);
    let request = ExportTraceServiceRequest::decode(&bytes[..]).expect("decodes");
    let text = to_json(&request, false).to_string();
    for (encoding, body) in [(Encoding::Protobuf, &bytes[..]), (Encoding::Json, text.as_bytes())] {
        let started = std::time::Instant::now();
        let rounds = 10;
        for _ in 0..rounds {
            let rows = decode(body, encoding, Limits::default()).expect("decodes").rows(None);
            assert_eq!(rows.taken.len(), SPANS);
        }
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{encoding:?}: {:.0} spans a second of {} bytes",
            (rounds * SPANS) as f64 / seconds,
            body.len() / SPANS
        );
    }
}
