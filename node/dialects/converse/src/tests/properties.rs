//! Facts about random messages, bodies and streams.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{encoded, event, message};
use crate::{ConverseStreamReader, EventStreamMessage, EventStreamParser, read_error, read_response};

fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "output",
        "message",
        "content",
        "text",
        "toolUse",
        "toolUseId",
        "name",
        "input",
        "reasoningContent",
        "reasoningText",
        "signature",
        "stopReason",
        "usage",
        "delta",
        "start",
        "contentBlockIndex",
        "image",
        "source",
        "bytes",
        "format",
        "citationsContent",
        "__type",
        "cacheDetails",
        "ttl",
        "inputTokens",
    ]);
    let leaf = prop_oneof![Just(json!(null)), any::<bool>().prop_map(Value::from), (0u64..3).prop_map(Value::from)];
    let leaf = prop_oneof![leaf, "[a-z_]{0,6}".prop_map(Value::from)];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..5)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

fn any_message() -> impl Strategy<Value = EventStreamMessage> {
    let headers = prop::collection::vec(("[:a-z-]{1,12}", ".{0,12}"), 0..6);
    (headers, ".{0,80}").prop_map(|(headers, payload)| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        message(&headers, &payload)
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_messages(
        messages in prop::collection::vec(any_message(), 0..5),
        cuts in prop::collection::vec(0usize..2000, 0..12),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(encoded).collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut parser = EventStreamParser::new();
        let mut read = Vec::new();
        for pair in cuts.windows(2) {
            read.extend(parser.push(&bytes[pair[0]..pair[1]]).expect("good messages"));
        }
        prop_assert_eq!(parser.finish(), Ok(()));
        prop_assert_eq!(read, messages);
    }

    #[test]
    fn a_changed_byte_is_found(message in any_message(), at in any::<usize>(), change in 1u8..) {
        let mut bytes = encoded(&message);
        let at = at % bytes.len();
        bytes[at] ^= change;
        let mut parser = EventStreamParser::new();
        let read = parser.push(&bytes);
        prop_assert!(read.is_err() || (read == Ok(Vec::new()) && parser.finish().is_err()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut parser = EventStreamParser::new();
        let _ = parser.push(&bytes);
        let _ = parser.finish();
    }

    #[test]
    fn any_body_is_read_or_refused(body in any_json()) {
        let _ = read_response(&body);
        let _ = read_response(&json!({"output": {"message": {"content": body.clone()}}, "usage": body.clone()}));
        read_error(500, &body);
    }

    #[test]
    fn any_stream_is_read_or_refused(events in prop::collection::vec((0usize..6, any_json()), 0..8)) {
        let kinds =
            ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"];
        let mut reader = ConverseStreamReader::default();
        for (kind, mut data) in events {
            if let Value::Object(fields) = &mut data {
                fields.entry("contentBlockIndex").or_insert(json!(0));
            }
            let _ = reader.push(&event(kinds[kind], &data));
        }
        reader.finish();
    }
}
