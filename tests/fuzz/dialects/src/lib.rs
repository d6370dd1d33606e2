//! Fuzz targets of the wire formats of model APIs, one file each; `fuzz_targets` only calls them.
//!
//! | target | input | checked against |
//! |---|---|---|
//! | `request` | formats, options, then the body of a request | the body read again, in every format |
//! | `answer` | formats, options, then a whole answer or an error | the same, and the answer as a stream |
//! | `stream` | formats, options, cuts, then a stream | the stream in other pieces; the written stream read again |
//! | `events` | a kind, cuts, then bytes of a stream | the bytes in other pieces; events written and read again |
//!
//! Every input begins with a [`Head`]. The code under test is the gateway's own translation, whose source is included
//! here, so that the build needs only the dialects. A fact that does not hold is a panic: the fuzzer keeps its input.

pub mod answer;
pub mod events;
mod frames;
mod head;
pub mod request;
pub mod stream;

/// Translation of the gateway, which names nothing but the dialects.
#[allow(dead_code, unused_imports, reason = "the gateway calls more of it")]
#[path = "../../../../node/gateway/src/translation/mod.rs"]
mod translation;

pub use head::{HEAD_BYTES, Head};

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{FoldLimits, ModelResponse, ResponseFold, StreamEvent};
use serde_json::Value;
use translation::{RequestTarget, UpstreamFormat};

/// Upper bound of the bytes of an input.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Formats that model servers speak.
const SERVERS: [UpstreamFormat; 7] = [
    UpstreamFormat::Client(Dialect::Chat),
    UpstreamFormat::Client(Dialect::Responses),
    UpstreamFormat::Client(Dialect::Anthropic),
    UpstreamFormat::Client(Dialect::Gemini),
    UpstreamFormat::Converse,
    UpstreamFormat::BedrockAnthropic,
    UpstreamFormat::VertexAnthropic,
];

/// Model that all requests name.
const MODEL: &str = "claude-sonnet-4-5";

fn target(stream: bool) -> RequestTarget<'static> {
    RequestTarget { model: MODEL, stream }
}

/// Fails if two bodies differ.
#[track_caller]
fn assert_same(what: &str, dialect: Dialect, first: &Value, second: &Value) {
    assert!(first == second, "{what} of {dialect:?} changed\nfrom {first}\nto   {second}");
}

/// Folds events into an answer. None if they exceed a limit of the fold, which no other event may do.
fn folded(events: &[StreamEvent]) -> Option<ModelResponse> {
    let mut fold = ResponseFold::new(FoldLimits::default());
    for event in events {
        if let Err(why) = fold.push(event) {
            let is_limit = matches!(why, assay_node_dialects::form::FoldError::TooMany { .. });
            assert!(is_limit, "{why}: {event:?} of {events:?}");
            return None;
        }
    }
    Some(fold.into_response())
}
