//! Whole answers and errors: each is refused, or read, written in every format, and read again.

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ModelResponse, unfold};
use assay_node_dialects_chat::completions::CompletionResponse;
use assay_node_dialects_chat::embeddings::EmbeddingResponse;
use serde_json::Value;

use crate::head::{Head, body};
use crate::stream::reread;
use crate::translation::{self, CallTranslation, read_error, read_response, write_error, write_stream_error};
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
                whole(client, &call, &response);
                streamed(client, &call, &response);
            }
            Err(why) => assert_ne!(why.to_string(), ""),
        }
    }
}

/// Checks that a written answer is what its dialect writes of it again.
fn whole(client: Dialect, call: &CallTranslation, response: &ModelResponse) {
    let written = call.write_response(response.clone());
    let again = read_response(client, &written).unwrap_or_else(|why| panic!("{why}: {written}"));
    assert_same("an answer", client, &written, &call.write_response(again));
}

/// Checks that an answer survives as events, and that a client can read them.
fn streamed(client: Dialect, call: &CallTranslation, response: &ModelResponse) {
    let in_order = response.choices.windows(2).all(|pair| pair[0].index < pair[1].index);
    let events = unfold(response);
    if in_order && response.choices.iter().all(|choice| choice.extra == Default::default()) {
        let has_parts =
            |response: &ModelResponse| response.choices.iter().map(|choice| choice.parts.len()).sum::<usize>();
        let folded = folded(&events).map(|folded| has_parts(&folded));
        assert_eq!(folded, Some(has_parts(response)));
    }
    let read = reread(client, &call.write_as_stream(response));
    assert!(read.error.is_none() && read.is_ended, "{client:?}: {read:?} of {response:?}");
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
