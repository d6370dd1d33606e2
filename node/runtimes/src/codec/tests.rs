//! Tests of the decoder and the encoder.

use serde_json::{Value, json};

use super::*;
use crate::frames::{CallForm, CallOutput, FunctionCall, TaskProgress, WorkerReady};

fn frames() -> Vec<FromWorker> {
    vec![
        FromWorker::Ready(WorkerReady { runtime: "node".into(), version: "20.1.0".into() }),
        FromWorker::Progress(TaskProgress { id: "a".into(), data: json!({"data": "ä𝄞"}) }),
        FromWorker::Result(CallOutput { id: "a".into(), value: json!([1, null, "x"]), left: 2, notes: None }),
    ]
}

fn encoded() -> Vec<u8> {
    frames().iter().flat_map(|frame| encode_frame(frame).unwrap()).collect()
}

fn taken(decoder: &mut ChannelDecoder<FromWorker>, into: &mut Vec<FromWorker>) {
    while let Some(frame) = decoder.next_frame().unwrap() {
        into.push(frame);
    }
}

#[test]
fn every_split_into_three_parts_decodes_to_the_same_frames() {
    let bytes = encoded();
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let (mut decoder, mut decoded) = (ChannelDecoder::default(), Vec::new());
            for part in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                decoder.push(part);
                taken(&mut decoder, &mut decoded);
            }
            assert_eq!(decoded, frames(), "split at {first} and {second}");
            assert_eq!(decoder.pending(), 0);
        }
    }
}

#[test]
fn single_bytes_decode_to_the_same_frames() {
    let (mut decoder, mut decoded) = (ChannelDecoder::default(), Vec::new());
    for byte in encoded() {
        decoder.push(&[byte]);
        taken(&mut decoder, &mut decoded);
    }
    assert_eq!(decoded, frames());
}

#[test]
fn a_length_above_the_limit_is_refused_before_its_bytes_arrive() {
    let mut decoder = ChannelDecoder::<FromWorker>::default();
    let length = u32::try_from(FROM_WORKER_BYTES_MAX + 1).unwrap();
    decoder.push(&length.to_be_bytes());
    let error = decoder.next_frame().unwrap_err();
    assert!(matches!(error, FrameCodecError::TooLong { bytes, .. } if bytes == FROM_WORKER_BYTES_MAX + 1), "{error}");
    assert!(decoder.received.capacity() < 1024);
}

#[test]
fn a_length_at_the_limit_allocates_only_what_arrives() {
    let mut decoder = ChannelDecoder::<FromWorker>::default();
    decoder.push(&u32::try_from(FROM_WORKER_BYTES_MAX).unwrap().to_be_bytes());
    decoder.push(b"{");
    assert!(decoder.next_frame().unwrap().is_none());
    assert!(decoder.received.capacity() < 1024);
}

#[test]
fn the_memory_of_a_large_frame_is_released() {
    let large = FromWorker::Progress(TaskProgress { id: "a".into(), data: Value::from("x".repeat(1 << 20)) });
    let mut decoder = ChannelDecoder::<FromWorker>::default();
    decoder.push(&encode_frame(&large).unwrap());
    assert_eq!(decoder.next_frame().unwrap(), Some(large));
    decoder.push(&encoded());
    assert!(decoder.received.capacity() <= IDLE_CAPACITY_MAX);
}

#[test]
fn a_frame_above_the_limit_is_not_encoded() {
    let value = Value::from("x".repeat(FROM_WORKER_BYTES_MAX));
    let frame = FromWorker::Result(CallOutput { id: "a".into(), value, left: 0, notes: None });
    let error = encode_frame(&frame).unwrap_err().to_string();
    assert!(error.contains("a frame of the worker has") && error.contains("at most 17825792 are valid"), "{error}");
}

#[test]
fn unknown_forms_are_refused() {
    for body in [r#"{"surprise":{}}"#, "{}", "[", r#""ready""#, "{\"loaded\":{}}x", "\u{1}"] {
        let mut decoder = ChannelDecoder::<FromWorker>::default();
        decoder.push(&u32::try_from(body.len()).unwrap().to_be_bytes());
        decoder.push(body.as_bytes());
        let error = decoder.next_frame().unwrap_err();
        assert!(matches!(error, FrameCodecError::Malformed { .. }), "{body}: {error}");
    }
}

fn refusal(value: &str) -> Option<FrameCodecError> {
    let body = format!(r#"{{"result":{{"id":"a","value":{value}}}}}"#);
    let mut decoder = ChannelDecoder::<FromWorker>::default();
    decoder.push(&u32::try_from(body.len()).unwrap().to_be_bytes());
    decoder.push(body.as_bytes());
    decoder.next_frame().err()
}

#[test]
fn many_values_are_refused_before_they_take_memory() {
    let values = |count: usize| format!("[{}0]", "{},".repeat(count / 2));
    assert!(refusal(&values(FROM_WORKER_VALUES_MAX - 10)).is_none());
    let error = refusal(&values(FROM_WORKER_VALUES_MAX)).expect("too many");
    assert!(matches!(error, FrameCodecError::ManyValues { .. }), "{error}");
    // What looks like values in a text is none.
    let text = format!(r#""\\\"{}""#, "{},[".repeat(FROM_WORKER_VALUES_MAX));
    assert!(refusal(&text).is_none());
}

#[test]
fn deep_values_are_refused_with_their_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(refusal(&nested(FROM_WORKER_DEPTH_MAX - 2)).is_none());
    let error = refusal(&nested(FROM_WORKER_DEPTH_MAX - 1)).expect("too deep");
    assert_eq!(error.to_string(), "a frame of the worker is nested more than 120 levels deep");
}

#[test]
fn a_channel_that_ends_within_a_frame_is_an_error() {
    let bytes = encoded();
    let mut decoder = ChannelDecoder::<FromWorker>::default();
    let mut channel = &bytes[..bytes.len() - 1];
    assert_eq!(read_frame(&mut channel, &mut decoder).unwrap(), Some(frames()[0].clone()));
    assert_eq!(read_frame(&mut channel, &mut decoder).unwrap(), Some(frames()[1].clone()));
    assert!(matches!(read_frame(&mut channel, &mut decoder), Err(ChannelReadError::CutOff(_))));
}

#[test]
fn a_channel_that_ends_between_frames_ends_without_an_error() {
    let bytes = encoded();
    let mut decoder = ChannelDecoder::<FromWorker>::default();
    let mut channel = bytes.as_slice();
    for frame in frames() {
        assert_eq!(read_frame(&mut channel, &mut decoder).unwrap(), Some(frame));
    }
    assert_eq!(read_frame(&mut channel, &mut decoder).unwrap(), None);
}

#[test]
fn a_call_has_the_documented_form() {
    let call = FunctionCall {
        id: "c1".into(),
        form: CallForm::EvalTask,
        input: json!({"b": 1, "a": 2}),
        parent: None,
        trace: None,
        environment: [("KEY".to_owned(), "v".to_owned())].into(),
        hooks: None,
    };
    let bytes = encode_frame(&ToWorker::Call(Box::new(call.clone()))).unwrap();
    let text = String::from_utf8(bytes[FRAME_HEADER_BYTES..].to_vec()).unwrap();
    let form = r#"{"call":{"id":"c1","form":"eval_task","input":{"b":1,"a":2},"parent":null,"trace":null,"environment":{"KEY":"v"},"hooks":null}}"#;
    assert_eq!(text, form);
    let short =
        json!({"call": {"id": "c1", "form": "eval_task", "input": {"b": 1, "a": 2}, "environment": {"KEY": "v"}}});
    assert_eq!(serde_json::from_value::<ToWorker>(short).unwrap(), ToWorker::Call(Box::new(call)));
}
