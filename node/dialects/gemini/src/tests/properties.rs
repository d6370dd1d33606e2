//! Properties of random bodies and answers.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::grammar::{answer, any_json, openapi_schema, request};
use super::{events_of, folded, joined, read_stream, rewritten, sse, write_stream};
use crate::{
    GeminiStreamReader, from_openapi, read_count_tokens, read_embed_request, read_error, read_request, read_response,
    to_openapi, write_request, write_response,
};
use assay_node_dialects::WriteOptions;
use assay_node_dialects::form::{
    ContentPart, Extra, FinishReason, MediaSource, ModelChoice, ModelResponse, ReasoningPart, TextPart, TokenUsage,
    ToolCallPart,
};

fn signature() -> impl Strategy<Value = Option<String>> {
    option::of("[A-Za-z0-9]{4}")
}

fn part() -> impl Strategy<Value = ContentPart> {
    prop_oneof![
        ("[a-z ]{1,6}", signature())
            .prop_map(|(text, signature)| { ContentPart::Text(TextPart { text, signature, ..TextPart::default() }) }),
        ("[a-z ]{1,6}", signature()).prop_map(|(text, signature)| {
            ContentPart::Reasoning(ReasoningPart { text, signature, ..ReasoningPart::default() })
        }),
        ("call_[a-z0-9]{8}", "[a-z]{1,6}", any_json(), signature()).prop_map(|(id, name, value, signature)| {
            let arguments = json!({ "value": value }).to_string();
            ContentPart::ToolCall(ToolCallPart { id, name, arguments, signature, cache: None, extra: Extra::default() })
        }),
        "[a-z]{4}".prop_map(|data| ContentPart::Image {
            source: MediaSource::Base64 { media_type: "image/png".to_owned(), data },
            detail: None,
            cache: None,
            extra: Extra::default(),
        }),
    ]
}

fn choice() -> impl Strategy<Value = ModelChoice> {
    (vec(part(), 0..5), 0..4_u8).prop_map(|(parts, reason)| {
        let has_calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
        let finish = match reason {
            0 => FinishReason::Length,
            1 => FinishReason::ContentFilter,
            2 => FinishReason::Other("LANGUAGE".to_owned()),
            _ if has_calls => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        };
        ModelChoice { index: 0, parts, finish: Some(finish), logprobs: None, extra: Extra::default() }
    })
}

/// An answer that the dialect can express.
fn response() -> impl Strategy<Value = ModelResponse> {
    let usage = (0_u64..9, 0_u64..9, option::of(0_u64..9), option::of(0_u64..9)).prop_map(
        |(input, output, cached_input, reasoning)| TokenUsage {
            input,
            output: output + reasoning.unwrap_or(0),
            cached_input,
            reasoning,
            ..TokenUsage::default()
        },
    );
    ("[a-z0-9]{0,8}", "[a-z0-9]{0,8}", vec(choice(), 1..3), option::of(usage)).prop_map(
        |(id, model, mut choices, usage)| {
            for (index, choice) in (0..).zip(&mut choices) {
                choice.index = index;
            }
            ModelResponse { id, model, created: None, choices, usage, extra: Extra::default() }
        },
    )
}

/// Replaces one value within a body, chosen by a number.
fn replace(body: &mut Value, mut at: usize, by: Value) {
    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(values) => values.iter().map(count).sum(),
            Value::Object(fields) => fields.values().map(count).sum::<usize>(),
            _ => 0,
        }
    }
    at %= count(body);
    let mut target = body;
    while at > 0 {
        at -= 1;
        let children: Vec<&mut Value> = match target {
            Value::Array(values) => values.iter_mut().collect(),
            Value::Object(fields) => fields.values_mut().collect(),
            _ => unreachable!("a leaf has no more values"),
        };
        let mut rest = children.into_iter();
        target = loop {
            let child = rest.next().expect("counted");
            let size = count(child);
            if at < size {
                break child;
            }
            at -= size;
        };
    }
    *target = by;
}

/// Reads a body by every reader, whatever it is.
fn read_all(body: &Value) {
    if let Ok(request) = read_request("m", false, body) {
        let options = WriteOptions { needs_call_signatures: true, ..WriteOptions::default() };
        let _ = write_request(&request, &options);
    }
    if let Ok(response) = read_response(body) {
        write_response(&response);
        write_stream(&events_of(&response));
    }
    let mut reader = GeminiStreamReader::default();
    let mut events = reader.push(&sse(body)).unwrap_or_default();
    events.extend(reader.push(&sse(body)).unwrap_or_default());
    events.extend(reader.finish());
    write_stream(&events);
    read_error(400, body);
    let _ = (to_openapi(body, ""), from_openapi(body, ""), read_count_tokens("m", body), read_embed_request(body));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn unknown_fields_of_requests_survive(body in request()) {
        prop_assert_eq!(rewritten(&body), body);
    }

    #[test]
    fn unknown_fields_of_answers_survive(body in answer()) {
        let response = read_response(&body).expect("reads");
        prop_assert_eq!(write_response(&response), body);
    }

    #[test]
    fn an_answer_survives_writing_and_reading(response in response()) {
        prop_assert_eq!(read_response(&write_response(&response)).expect("reads"), response);
    }

    #[test]
    fn a_written_stream_is_the_whole_answer(response in response()) {
        let streamed = folded(&read_stream(&write_stream(&events_of(&response))));
        prop_assert_eq!(streamed, joined(response));
    }

    #[test]
    fn a_changed_body_never_panics(mut body in prop_oneof![request(), answer(), openapi_schema()], at in any::<usize>(), by in any_json()) {
        replace(&mut body, at, by);
        read_all(&body);
    }

    #[test]
    fn any_json_never_panics(body in any_json()) {
        read_all(&body);
    }

    #[test]
    fn schemas_that_were_written_are_read_and_written_alike(schema in openapi_schema()) {
        let read = from_openapi(&schema, "").expect("reads");
        let written = to_openapi(&read, "").expect("writes");
        let again = to_openapi(&from_openapi(&written, "").expect("reads"), "").expect("writes");
        prop_assert_eq!(again, written);
    }
}
