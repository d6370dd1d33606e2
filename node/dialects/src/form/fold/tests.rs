//! Tests of folding streams and unfolding answers.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Dialect;
use crate::form::{CacheControl, FinishReason, MediaSource, ModelErrorKind, TokenUsage};

fn fold(events: &[StreamEvent]) -> ResponseFold {
    let mut fold = ResponseFold::default();
    events.iter().for_each(|event| fold.push(event).expect("an answer"));
    fold
}

fn start(part: usize, start: PartStart) -> StreamEvent {
    StreamEvent::PartStart { choice: 0, part, start }
}

fn delta(part: usize, delta: PartDelta) -> StreamEvent {
    StreamEvent::PartDelta { choice: 0, part, delta }
}

#[test]
fn what_came_before_an_error_is_kept() {
    let error = ModelError {
        kind: ModelErrorKind::Server,
        message: "cut".into(),
        code: None,
        param: None,
        extra: Extra::default(),
    };
    let text = |text: &str| delta(0, PartDelta::Text(text.into()));
    let fold = fold(&[start(0, PartStart::Text), text("a"), text("b"), StreamEvent::Error(error.clone())]);
    assert_eq!((fold.error(), fold.is_ended()), (Some(&error), false));
    let kept = &fold.response().choices[0];
    assert_eq!(kept.parts, [ContentPart::Text(TextPart { text: "ab".into(), ..TextPart::default() })]);
    assert_eq!(kept.finish, None);
}

#[test]
fn pieces_of_signatures_lists_and_later_usage_are_joined() {
    let fields = |value: Value| Extra::of(Dialect::Chat, value.as_object().expect("an object").clone());
    let usage = |output| StreamEvent::Usage(TokenUsage { output, ..TokenUsage::default() });
    let logprobs = |logprobs| StreamEvent::Logprobs { choice: 0, logprobs };
    let fold = fold(&[
        start(0, PartStart::Reasoning),
        delta(0, PartDelta::Signature("a".into())),
        delta(0, PartDelta::Signature("b".into())),
        start(1, PartStart::Text),
        delta(1, PartDelta::Foreign(fields(json!({ "annotations": [1], "x": 1 })))),
        delta(1, PartDelta::Foreign(fields(json!({ "annotations": [2], "x": 2 })))),
        logprobs(json!({ "content": [1], "refusal": null })),
        logprobs(json!({ "content": [2], "refusal": null })),
        usage(1),
        usage(2),
        StreamEvent::End,
    ]);
    assert!(fold.is_ended());
    let response = fold.into_response();
    let choice = &response.choices[0];
    assert!(matches!(&choice.parts[0], ContentPart::Reasoning(part) if part.signature.as_deref() == Some("ab")));
    assert!(
        matches!(&choice.parts[1], ContentPart::Text(part) if part.extra == fields(json!({ "annotations": [1, 2], "x": 2 })))
    );
    assert_eq!(choice.logprobs, Some(json!({ "content": [1, 2], "refusal": null })));
    assert_eq!(response.usage.expect("told").output, 2);
}

#[test]
fn choices_are_ordered_by_index() {
    let text = |choice| StreamEvent::PartStart { choice, part: 0, start: PartStart::Text };
    let fold = fold(&[text(2), text(0), text(1), StreamEvent::Finish { choice: 0, reason: FinishReason::Stop }]);
    let choices = fold.into_response().choices;
    assert_eq!(choices.iter().map(|choice| choice.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(choices[0].finish, Some(FinishReason::Stop));
}

#[test]
fn events_that_make_no_answer_are_refused() {
    let mut fold = ResponseFold::default();
    assert_eq!(fold.push(&start(1, PartStart::Text)), Err(FoldError::OutOfOrder { choice: 0, part: 1 }));
    let none = Err(FoldError::NoSuchPart { choice: 0, part: 0 });
    assert_eq!(fold.push(&delta(0, PartDelta::Text("a".into()))), none);
    assert_eq!(fold.push(&StreamEvent::PartEnd { choice: 0, part: 0 }), none);
    fold.push(&start(0, PartStart::Text)).expect("the first part");
    assert_eq!(fold.push(&delta(0, PartDelta::Arguments("a".into()))), none, "a text has no arguments");
}

#[test]
fn an_answer_is_bounded() {
    let limits = FoldLimits { bytes_max: 3, parts_max: 2, choices_max: 1 };
    let too_many = |of, max| Err(FoldError::TooMany { of, max });
    let mut fold = ResponseFold::new(limits);
    fold.push(&start(0, PartStart::Text)).expect("fits");
    fold.push(&delta(0, PartDelta::Text("abc".into()))).expect("fits");
    assert_eq!(fold.push(&delta(0, PartDelta::Text("d".into()))), too_many("bytes", 3));
    fold.push(&start(1, PartStart::Text)).expect("fits");
    assert_eq!(fold.push(&start(2, PartStart::Text)), too_many("parts", 2));
    let other = StreamEvent::Finish { choice: 1, reason: FinishReason::Stop };
    assert_eq!(fold.push(&other), too_many("choices", 1));
}

fn any_extra() -> impl Strategy<Value = Extra> {
    let fields = vec(("[a-c]", prop_oneof![Just(json!([1])), Just(json!("x"))]), 0..2);
    (fields, option::of(Just("spelling"))).prop_map(|(fields, spelling)| {
        let extra = Extra::of(Dialect::Chat, fields.into_iter().collect());
        match spelling {
            Some(spelling) => extra.spelled(spelling),
            None => extra,
        }
    })
}

fn any_part() -> impl Strategy<Value = ContentPart> {
    let text = || "[a-z]{0,4}";
    let cache = || option::of(Just(CacheControl { value: json!({ "type": "ephemeral" }) }));
    let texts = (text(), cache(), option::of(text()), any_extra(), any::<bool>());
    let calls = (text(), text(), text(), option::of(text()), cache(), any_extra());
    let thoughts = (text(), option::of(text()), option::of(text()), any_extra());
    prop_oneof![
        texts.prop_map(|(text, cache, signature, extra, is_refusal)| {
            let part = TextPart { text, cache, signature, extra };
            if is_refusal { ContentPart::Refusal(part) } else { ContentPart::Text(part) }
        }),
        calls.prop_map(|(id, name, arguments, signature, cache, extra)| ContentPart::ToolCall(ToolCallPart {
            id,
            name,
            arguments,
            signature,
            cache,
            extra
        })),
        thoughts.prop_map(|(text, signature, encrypted, extra)| ContentPart::Reasoning(ReasoningPart {
            text,
            signature,
            encrypted,
            extra
        })),
        (text(), any_extra()).prop_map(|(url, extra)| ContentPart::Image {
            source: MediaSource::Url(url),
            detail: None,
            cache: None,
            extra
        }),
        text().prop_map(|text| ContentPart::Foreign { from: Dialect::Gemini, part: json!({ "a": text }) }),
    ]
}

fn any_response() -> impl Strategy<Value = ModelResponse> {
    let logprobs = option::of(Just(json!({ "content": [1] })));
    let choices = vec((vec(any_part(), 0..5), logprobs), 0..3);
    let usage = option::of((any::<u64>(), option::of(any::<u64>())));
    (choices, usage, any_extra(), option::of(any::<u64>())).prop_map(|(choices, usage, extra, created)| ModelResponse {
        id: "i".into(),
        model: "m".into(),
        created,
        choices: (0..)
            .zip(choices)
            .map(|(index, (parts, logprobs))| {
                let finish = Some(FinishReason::Stop);
                // indexes may leave holes
                ModelChoice { index: 2 * index, parts, finish, logprobs, extra: Extra::default() }
            })
            .collect(),
        usage: usage.map(|(input, reasoning)| TokenUsage { input, reasoning, ..TokenUsage::default() }),
        extra,
    })
}

proptest! {
    #[test]
    fn folding_an_unfolded_answer_gives_it_again(response in any_response()) {
        let fold = fold(&unfold(&response));
        prop_assert!(fold.is_ended() && fold.error().is_none());
        prop_assert_eq!(fold.into_response(), response);
    }
}
