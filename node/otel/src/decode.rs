//! Decoding of messages within limits.

use prost::Message;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::OtelError;
use crate::json;
use crate::proto::ExportTraceServiceRequest;
use crate::wire::{self, Counted};

/// Encodings of OTLP over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Protobuf,
    Json,
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Encoding::Protobuf => "protobuf",
            Encoding::Json => "JSON",
        }
    }
}

/// Signal of an export. Only traces are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Traces,
    Logs,
    Metrics,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Signal::Traces => "trace",
            Signal::Logs => "log",
            Signal::Metrics => "metric",
        }
    }
}

/// Upper bound of the spans of one request. Exporters send 512 at once by default, and collectors 8192.
pub const SPANS_MAX: usize = 20_000;
/// Upper bound of the resources and scopes of one request: one of each per span.
pub const GROUPS_MAX: usize = 2 * SPANS_MAX;
/// Upper bound of the messages of one request. It bounds the memory that a hostile body of empty messages needs.
pub const MESSAGES_MAX: usize = 2_000_000;
/// Upper bound of the attributes of a span, an event, a link or a resource.
///
/// Exporters stop at 128 by default. Long conversations use several attributes for each message.
pub const ATTRIBUTES_MAX: usize = 8_192;
pub const EVENTS_MAX: usize = 4_096;
pub const LINKS_MAX: usize = 1_024;
/// Upper bound of the nesting of an attribute's value. The JSON parser accepts no deeper nesting.
pub const VALUE_DEPTH_MAX: usize = 24;

/// Limits of one request. The first three apply to the request, and the others to each span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub spans: usize,
    pub groups: usize,
    pub messages: usize,
    pub attributes: usize,
    pub events: usize,
    pub links: usize,
    pub value_depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            spans: SPANS_MAX,
            groups: GROUPS_MAX,
            messages: MESSAGES_MAX,
            attributes: ATTRIBUTES_MAX,
            events: EVENTS_MAX,
            links: LINKS_MAX,
            value_depth: VALUE_DEPTH_MAX,
        }
    }
}

/// Decoded export of spans with its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    pub(crate) request: ExportTraceServiceRequest,
    pub(crate) limits: Limits,
}

impl Export {
    /// Creates an export from a decoded request, such as that of a gRPC service.
    pub fn of(request: ExportTraceServiceRequest, limits: Limits) -> Result<Export, OtelError> {
        let groups = request.resource_spans.iter().map(|resource| 1 + resource.scope_spans.len()).sum();
        let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        let items = scopes.map(|scope| scope.spans.len()).sum();
        check(Counted { items, groups, all: items + groups }, limits)?;
        Ok(Export { request, limits })
    }

    pub fn spans(&self) -> usize {
        let scopes = self.request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        scopes.map(|scope| scope.spans.len()).sum()
    }
}

/// Decodes an export of spans.
pub fn decode(bytes: &[u8], encoding: Encoding, limits: Limits) -> Result<Export, OtelError> {
    let malformed = |why: String| malformed(Signal::Traces, encoding, why);
    match encoding {
        Encoding::Protobuf => {
            check(wire::count(bytes, &wire::TRACES).map_err(malformed)?, limits)?;
            let request = ExportTraceServiceRequest::decode(bytes).map_err(|why| malformed(why.to_string()))?;
            Ok(Export { request, limits })
        }
        Encoding::Json => {
            // Objects are counted before they are parsed, because a span of two bytes needs hundreds in memory.
            let all = objects_of(bytes);
            check(Counted { items: 0, groups: 0, all }, limits)?;
            let traces: TraceCounts = from_json(bytes).map_err(malformed)?;
            check(Counted { items: traces.spans(), groups: traces.groups(), all }, limits)?;
            Ok(Export { request: from_json(bytes).map_err(malformed)?, limits })
        }
    }
}

/// Counts the log records or data points of an export whose signal is not stored.
pub fn count(bytes: &[u8], encoding: Encoding, signal: Signal) -> Result<u64, OtelError> {
    let counted = match (encoding, signal) {
        (Encoding::Protobuf, _) => {
            let shape = match signal {
                Signal::Traces => &wire::TRACES,
                Signal::Logs => &wire::LOGS,
                Signal::Metrics => &wire::METRICS,
            };
            wire::count(bytes, shape).map(|counted| counted.items)
        }
        (Encoding::Json, Signal::Traces) => from_json(bytes).map(|traces: TraceCounts| traces.spans()),
        (Encoding::Json, Signal::Logs) => from_json(bytes).map(|logs: Logs| logs.records()),
        (Encoding::Json, Signal::Metrics) => from_json(bytes).map(|metrics: Metrics| metrics.points()),
    };
    counted.map(|counted| counted as u64).map_err(|why| malformed(signal, encoding, why))
}

fn from_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    // An empty body is the empty message, as in the other encoding.
    if bytes.trim_ascii().is_empty() {
        return serde_json::from_slice(b"{}").map_err(|why| why.to_string());
    }
    serde_json::from_slice(bytes).map(|json::Object(whole)| whole).map_err(|why| why.to_string())
}

fn malformed(signal: Signal, encoding: Encoding, why: String) -> OtelError {
    OtelError::Malformed { signal: signal.name(), encoding: encoding.name(), why }
}

fn check(counted: Counted, limits: Limits) -> Result<(), OtelError> {
    let of = [
        ("spans", counted.items, limits.spans),
        ("resources and scopes", counted.groups, limits.groups),
        ("messages", counted.all, limits.messages),
    ];
    match of.into_iter().find(|(_, there, max)| there > max) {
        Some((what, _, max)) => Err(OtelError::TooMany { what, max }),
        None => Ok(()),
    }
}

/// Counts the objects of a JSON text, each of which may become a message. Invalid JSON is left to the parser.
fn objects_of(bytes: &[u8]) -> usize {
    let (mut objects, mut rest) = (0, bytes);
    while let Some(at) = memchr::memchr2(b'"', b'{', rest) {
        let is_object = rest[at] == b'{';
        rest = &rest[at + 1..];
        if is_object {
            objects += 1;
            continue;
        }
        // The scan continues after the end of the string and skips escaped characters.
        loop {
            let Some(at) = memchr::memchr2(b'"', b'\\', rest) else { return objects };
            let is_end = rest[at] == b'"';
            rest = rest.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
            if is_end {
                break;
            }
        }
    }
    objects
}

/// Parts of an export of spans that are counted. Ignored fields take no memory.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TraceCounts {
    #[serde(alias = "resource_spans", deserialize_with = "json::list")]
    resource_spans: Vec<ResourceSpanCounts>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceSpanCounts {
    #[serde(alias = "scope_spans", deserialize_with = "json::list")]
    scope_spans: Vec<ScopeSpanCounts>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScopeSpanCounts {
    #[serde(deserialize_with = "json::list")]
    spans: Vec<IgnoredAny>,
}

impl TraceCounts {
    fn groups(&self) -> usize {
        self.resource_spans.iter().map(|resource| 1 + resource.scope_spans.len()).sum()
    }

    fn spans(&self) -> usize {
        let scopes = self.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        scopes.map(|scope| scope.spans.len()).sum()
    }
}

/// Parts of an export of logs that are counted.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Logs {
    #[serde(alias = "resource_logs", deserialize_with = "json::list")]
    resource_logs: Vec<ResourceLogs>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceLogs {
    #[serde(alias = "scope_logs", deserialize_with = "json::list")]
    scope_logs: Vec<ScopeLogs>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScopeLogs {
    #[serde(alias = "log_records", deserialize_with = "json::list")]
    log_records: Vec<IgnoredAny>,
}

impl Logs {
    fn records(&self) -> usize {
        let scopes = self.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
        scopes.map(|scope| scope.log_records.len()).sum()
    }
}

/// Parts of an export of metrics that are counted.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metrics {
    #[serde(alias = "resource_metrics", deserialize_with = "json::list")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceMetrics {
    #[serde(alias = "scope_metrics", deserialize_with = "json::list")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScopeMetrics {
    #[serde(deserialize_with = "json::list")]
    metrics: Vec<MetricCounts>,
}

impl Metrics {
    fn points(&self) -> usize {
        let scopes = self.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
        scopes.flat_map(|scope| &scope.metrics).map(MetricCounts::points).sum()
    }
}

/// Data points of a metric, of which one kind is present.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetricCounts {
    gauge: Option<Points>,
    sum: Option<Points>,
    histogram: Option<Points>,
    #[serde(alias = "exponential_histogram")]
    exponential_histogram: Option<Points>,
    summary: Option<Points>,
}

impl MetricCounts {
    fn points(&self) -> usize {
        let kinds = [&self.gauge, &self.sum, &self.histogram, &self.exponential_histogram, &self.summary];
        kinds.into_iter().flatten().map(|points| points.data_points.len()).sum()
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Points {
    #[serde(alias = "data_points", deserialize_with = "json::list")]
    data_points: Vec<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{ResourceSpans, ScopeSpans, Span};

    fn request(spans: usize) -> ExportTraceServiceRequest {
        let scope = ScopeSpans { scope: None, spans: vec![Span::default(); spans] };
        ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { resource: None, scope_spans: vec![scope] }] }
    }

    fn limits(spans: usize) -> Limits {
        Limits { spans, ..Limits::default() }
    }

    #[test]
    fn a_message_in_json_is_an_object() {
        let traces =
            |text: &str| decode(text.as_bytes(), Encoding::Json, Limits::default()).map(|export| export.spans());
        for text in
            ["[]", r#"{"resourceSpans": [[]]}"#, r#"{"resourceSpans": [{"scopeSpans": [{"spans": [[]]}]}]}"#, "7"]
        {
            assert!(traces(text).is_err(), "{text}");
        }
        assert_eq!(traces(r#"{"resourceSpans": null}"#), Ok(0));
        assert_eq!(traces(" "), Ok(0));
        for (signal, list) in [(Signal::Logs, "resourceLogs"), (Signal::Metrics, "resourceMetrics")] {
            let counted = |text: String| count(text.as_bytes(), Encoding::Json, signal);
            for text in ["[]".to_owned(), format!(r#"{{"{list}": [[]]}}"#), format!(r#"{{"{list}": {{}}}}"#)] {
                assert!(counted(text.clone()).is_err(), "{text}");
            }
            assert_eq!(counted(format!(r#"{{"{list}": [{{}}]}}"#)), Ok(0));
        }
    }

    #[test]
    fn an_export_has_at_most_so_many_spans_in_both_encodings() {
        let bytes = request(3).encode_to_vec();
        assert_eq!(decode(&bytes, Encoding::Protobuf, limits(3)).map(|export| export.spans()), Ok(3));
        let refused = decode(&bytes, Encoding::Protobuf, limits(2)).expect_err("too many");
        assert_eq!(refused.to_string(), "the export has more than 2 spans: send it in several requests");
        let text = br#"{"resourceSpans": [{"scopeSpans": [{"spans": [{}, {}, {}]}]}]}"#;
        assert_eq!(decode(text, Encoding::Json, limits(3)).map(|export| export.spans()), Ok(3));
        assert_eq!(decode(text, Encoding::Json, limits(2)), Err(refused));
    }

    #[test]
    fn empty_messages_are_counted_before_they_are_made() {
        let few = Limits { messages: 5, ..Limits::default() };
        let too_many = Err(OtelError::TooMany { what: "messages", max: 5 });
        assert_eq!(decode(&request(10).encode_to_vec(), Encoding::Protobuf, few), too_many);
        let text = br#"{"resourceSpans": [{}, {}, {}, {}, {}]}"#;
        assert_eq!(decode(text, Encoding::Json, few), too_many);
        let text = br#"{"resourceSpans": [{"schemaUrl": "{{{{{{{{\"{"}]}"#;
        assert!(decode(text, Encoding::Json, few).is_ok(), "braces within texts are no objects");
    }

    #[test]
    fn objects_are_counted_beside_texts_and_to_the_end() {
        for (text, objects) in [
            ("", 0),
            (r#"{"a{": "\\\"{"}{"#, 2),
            (r#"{"\\"{"#, 2),
            (r#"{"{"#, 1),
            ("{\"{\\", 1),
            (r#""\u007b{" {}"#, 1),
        ] {
            assert_eq!(objects_of(text.as_bytes()), objects, "{text}");
        }
    }

    #[test]
    fn what_is_no_export_says_where() {
        let refused = decode(b"{\"resourceSpans\": [{]}", Encoding::Json, Limits::default()).expect_err("no JSON");
        assert!(refused.to_string().contains("line 1 column"), "{refused}");
        let refused = decode(&[0x0a, 9], Encoding::Protobuf, Limits::default()).expect_err("cut off");
        assert!(refused.to_string().contains("at byte"), "{refused}");
    }

    /// Tests bodies from the public definitions: two points of each kind of metric, and three records of two resources.
    #[test]
    fn what_others_write_of_logs_and_metrics_is_counted() {
        let metrics = "0a8f01128c0112160a0567617567652a0d0a000a0931040000000000000012140a0373756d3a0d0a000a093104000000\
                       00000000121a0a09686973746f6772616d4a0d0a000a0921010000000000000012260a156578706f6e656e7469616c5f\
                       686973746f6772616d520d0a000a0921010000000000000012180a0773756d6d6172795a0d0a000a0921010000000000\
                       0000";
        let logs = "0a180a050a030a0161120f120b1a04494e464f2a030a017812000a0412021200";
        for (bytes, signal, items) in [(metrics, Signal::Metrics, 10), (logs, Signal::Logs, 3)] {
            let bytes = json::from_hex(bytes).expect("digits");
            assert_eq!(count(&bytes, Encoding::Protobuf, signal), Ok(items));
        }
    }

    #[test]
    fn log_records_and_data_points_are_counted_in_both_encodings() {
        let text = br#"{"resourceLogs": [{"scopeLogs": [{"logRecords": [{}, {"body": {}}]}, {"log_records": [{}]}]}]}"#;
        assert_eq!(count(text, Encoding::Json, Signal::Logs), Ok(3));
        let text = br#"{"resourceMetrics": [{"scopeMetrics": [{"metrics": [
            {"gauge": {"dataPoints": [{}]}}, {"sum": {"dataPoints": [{}, {}]}}, {"summary": {"dataPoints": [{}]}}]}]}]}"#;
        assert_eq!(count(text, Encoding::Json, Signal::Metrics), Ok(4));
        // resource_logs { scope_logs { log_records {} log_records {} } }
        let bytes = [0x0a, 6, 0x12, 4, 0x12, 0, 0x12, 0];
        assert_eq!(count(&bytes, Encoding::Protobuf, Signal::Logs), Ok(2));
        // resource_metrics { scope_metrics { metrics { sum { data_points {} } } } }
        let bytes = [0x0a, 8, 0x12, 6, 0x12, 4, 0x3a, 2, 0x0a, 0];
        assert_eq!(count(&bytes, Encoding::Protobuf, Signal::Metrics), Ok(1));
        assert_eq!(count(&request(2).encode_to_vec(), Encoding::Protobuf, Signal::Traces), Ok(2));
        assert!(count(b"{", Encoding::Json, Signal::Logs).is_err());
    }
}
