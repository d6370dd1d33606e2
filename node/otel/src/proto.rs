//! Messages of OTLP, with only the fields that are read or written. Unknown fields are skipped.
//!
//! The existing library is not used, because it includes the whole SDK of exporters. Its JSON accepts neither snake
//! case nor numbers as text. Field numbers and names are those of the public definitions.

use serde::Deserialize;

use crate::json;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "resource_spans", deserialize_with = "json::list")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    #[serde(alias = "scope_spans", deserialize_with = "json::list")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::list")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json::list")]
    pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::or_default")]
    pub name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::or_default")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(alias = "trace_id", deserialize_with = "json::hex")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(alias = "span_id", deserialize_with = "json::hex")]
    pub span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    #[serde(alias = "trace_state", deserialize_with = "json::or_default")]
    pub trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(alias = "parent_span_id", deserialize_with = "json::hex")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "json::or_default")]
    pub name: String,
    #[prost(int32, tag = "6")]
    #[serde(deserialize_with = "json::span_kind")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(alias = "start_time_unix_nano", deserialize_with = "json::unsigned")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(alias = "end_time_unix_nano", deserialize_with = "json::unsigned")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    #[serde(deserialize_with = "json::list")]
    pub attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "10")]
    #[serde(alias = "dropped_attributes_count", deserialize_with = "json::count")]
    pub dropped_attributes_count: u32,
    #[prost(message, repeated, tag = "11")]
    #[serde(deserialize_with = "json::list")]
    pub events: Vec<Event>,
    #[prost(uint32, tag = "12")]
    #[serde(alias = "dropped_events_count", deserialize_with = "json::count")]
    pub dropped_events_count: u32,
    #[prost(message, repeated, tag = "13")]
    #[serde(deserialize_with = "json::list")]
    pub links: Vec<Link>,
    #[prost(uint32, tag = "14")]
    #[serde(alias = "dropped_links_count", deserialize_with = "json::count")]
    pub dropped_links_count: u32,
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    #[prost(fixed64, tag = "1")]
    #[serde(alias = "time_unix_nano", deserialize_with = "json::unsigned")]
    pub time_unix_nano: u64,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::or_default")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    #[serde(deserialize_with = "json::list")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Link {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(alias = "trace_id", deserialize_with = "json::hex")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(alias = "span_id", deserialize_with = "json::hex")]
    pub span_id: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    #[serde(deserialize_with = "json::list")]
    pub attributes: Vec<KeyValue>,
}

/// Status of the span. `code` is 0 for unset, 1 for ok, and 2 for error.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::or_default")]
    pub message: String,
    #[prost(int32, tag = "3")]
    #[serde(deserialize_with = "json::status_code")]
    pub code: i32,
}

pub const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::or_default")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// Value of any kind. Its JSON form is read manually, because each kind has its own key.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    #[prost(oneof = "any_value::Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub value: Option<any_value::Value>,
}

pub mod any_value {
    //! Kinds of values.

    use super::{ArrayValue, KeyValueList};

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        #[prost(string, tag = "1")]
        String(String),
        #[prost(bool, tag = "2")]
        Bool(bool),
        #[prost(int64, tag = "3")]
        Int(i64),
        #[prost(double, tag = "4")]
        Double(f64),
        #[prost(message, tag = "5")]
        Array(ArrayValue),
        #[prost(message, tag = "6")]
        List(KeyValueList),
        #[prost(bytes = "vec", tag = "7")]
        Bytes(Vec<u8>),
    }
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::or_default")]
    pub values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::list")]
    pub values: Vec<KeyValue>,
}

/// Response to an export of any signal. The messages of the signals differ only in field names, which protobuf does not
/// send.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// Body of a refusal, the message `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// The message `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// The message `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<Delay>,
}

/// The message `google.protobuf.Duration`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Delay {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
}
