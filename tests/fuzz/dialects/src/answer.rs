//! Whole answers and errors: each is refused, or read, written in every format, and read again.

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{Extra, FinishReason, ModelChoice, ModelResponse, unfold};
use assay_node_dialects_chat::completions::CompletionResponse;
use assay_node_dialects_chat::embeddings::EmbeddingResponse;
use serde_json::Value;

use crate::head::{Head, body};
use crate::stream::{assert_like_whole, reread};
use crate::translation::{
    self, CallTranslation, UpstreamFormat, read_error, read_response, write_error, write_stream_error,
};
use crate::{assert_same, folded};

/// Statuses of refused requests.
const STATUSES: [u16; 10] = [200, 400, 401, 403, 404, 413, 429, 500, 503, 529];

pub fn run(input: &[u8]) {
    let Some((head, rest)) = Head::read(input) else { return };
    let Some(body) = body(rest) else { return };
    let _ = (CompletionResponse::read(&body), EmbeddingResponse::read(&body));
    refused(head, &body);
    for client in Dialect::ALL {
        let Ok(call) = head.call(client) else { continue };
        let _ = call.read_failure(&body);
        match call.read_response(&body) {
            Ok(response) => {
                whole(client, head.server(), &call, &response);
                streamed(client, &call, &response);
            }
            Err(why) => assert_ne!(why.to_string(), ""),
        }
    }
}

/// Checks that a written answer is what its dialect writes of it again. What comes from another dialect may be spelled
/// otherwise the second time, such as base64, but not the third.
fn whole(client: Dialect, from: UpstreamFormat, call: &CallTranslation, response: &ModelResponse) {
    let again = |written: &Value| {
        let read = read_response(client, written).unwrap_or_else(|why| panic!("{why}: {written}"));
        call.write_response(read)
    };
    let first = call.write_response(response.clone());
    let second = again(&first);
    if from == UpstreamFormat::Client(client) {
        assert_same("an answer", client, &first, &second);
    } else {
        assert_same("an answer", client, &second, &again(&second));
    }
}

/// Checks that an answer survives as events, and that a client can read them.
fn streamed(client: Dialect, call: &CallTranslation, response: &ModelResponse) {
    let in_order = response.choices.windows(2).all(|pair| pair[0].index < pair[1].index);
    // A stream has no event for an empty choice, nor for unknown fields of one.
    let is_seen = |choice: &ModelChoice| {
        choice.extra == Extra::default() && (!choice.parts.is_empty() || choice.finish.is_some())
    };
    if in_order && response.choices.iter().all(is_seen) {
        assert_eq!(folded(&unfold(response)).as_ref(), Some(response));
    }
    if tells_failure(client, response) {
        return;
    }
    let read = reread(client, &call.write_as_stream(response));
    // A stream of Gemini ends with the reason of each candidate only, which the answer may not have.
    let is_endless = client == Dialect::Gemini && !response.choices.iter().any(|choice| choice.finish.is_some());
    let is_ended = read.is_ended || is_endless;
    assert!(read.error.is_none() && is_ended, "{client:?}: {read:?} of {response:?}");
    assert_like_whole(client, call, response, &read);
}

/// Returns whether the answer has an error of its own, which a stream of the same dialect tells.
fn tells_failure(client: Dialect, response: &ModelResponse) -> bool {
    let is_failed = |choice: &ModelChoice| matches!(&choice.finish, Some(FinishReason::Other(reason)) if ["failed", "cancelled"].contains(&reason.as_str()));
    match client {
        Dialect::Responses => response.choices.iter().any(is_failed),
        _ => response.extra.for_dialect(client).is_some_and(|extra| extra.contains_key("error")),
    }
}

/// Checks that an error is told in every format, whole and in a stream.
fn refused(head: Head, body: &Value) {
    let status = STATUSES[head.number() % STATUSES.len()];
    let error = read_error(head.server(), status, body);
    let status = translation::error_status(head.server(), &error);
    for client in Dialect::ALL {
        let written = write_error(client, status, &error);
        let again = read_error(client, status, &written);
        assert_same("an error", client, &written, &write_error(client, status, &again));
        let read = reread(client, &write_stream_error(client, &error));
        assert!(read.error.is_some() && !read.is_ended, "{client:?}: {read:?} of {error:?}");
    }
}
