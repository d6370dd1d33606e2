//! Tests of text completions.

use super::*;

#[test]
fn a_prompt_has_a_size() {
    let table = [
        (json!("abcde"), (1, 5, 0), 2),
        (json!(["ab", "é"]), (2, 4, 0), 1),
        (json!([1, 2, 3]), (1, 0, 3), 3),
        (json!([[1, 2], [3]]), (2, 0, 3), 3),
        (json!(["abcd", [3]]), (2, 4, 1), 2),
    ];
    for (prompt, (inputs, text_bytes, tokens), estimate) in table {
        let size = PromptSize::of("prompt", &prompt).expect("a prompt");
        assert_eq!(size, PromptSize { inputs, text_bytes, tokens }, "{prompt}");
        assert_eq!(size.estimated_tokens(), estimate);
    }
    for (bad, path) in
        [(json!(1), "prompt"), (json!([]), "prompt"), (json!(["a", 1]), "prompt[1]"), (json!([[-1]]), "prompt[0]")]
    {
        let error = PromptSize::of("prompt", &bad).expect_err("no prompt").to_string();
        assert_eq!(error, format!("{path}: expected a text, a list of tokens, or a list of either"));
    }
}

#[test]
fn a_request_keeps_its_body() {
    let body = json!({ "model": "m", "prompt": ["a", "b"], "max_tokens": 16, "n": 2, "best_of": 3, "stream": true,
        "echo": true, "unknown": { "a": 1 }, "use_cache": true });
    let request = CompletionRequest::read(&body).expect("reads");
    assert_eq!((request.prompt.inputs, request.max_output_tokens, request.answers), (2, Some(16), 3));
    assert!(request.stream && !request.include_usage);
    let mut expected = body.clone();
    expected["model"] = json!("other");
    expected.as_object_mut().expect("an object").remove("use_cache");
    assert_eq!(request.body_for("other", &WriteOptions::default()), expected);
    expected["stream_options"] = json!({ "include_usage": true });
    let takes = WriteOptions { takes_stream_options: true, ..WriteOptions::default() };
    assert_eq!(request.body_for("other", &takes), expected);
}

#[test]
fn a_bad_request_is_refused_with_its_path() {
    let table = [
        (json!([]), "body: expected an object"),
        (json!({ "prompt": "a" }), "model: expected a text"),
        (json!({ "model": "m", "n": "1" }), "n: expected a whole number that is not negative"),
        (json!({ "model": "m", "stream": 1 }), "stream: expected true or false"),
    ];
    for (body, expected) in table {
        assert_eq!(CompletionRequest::read(&body).expect_err("is bad").to_string(), expected);
    }
}

fn push(fold: &mut CompletionStreamFold, chunk: Value) {
    let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
    fold.push(&SseEvent::of_data(data)).expect("a chunk");
}

#[test]
fn a_stream_is_its_whole_answer() {
    let choice = |index: u64, text: &str, finish: Value| json!({ "index": index, "text": text, "logprobs": null, "finish_reason": finish });
    let chunk = |choice: Value| json!({ "id": "cmpl-1", "model": "m", "choices": [choice] });
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3 });
    let mut fold = CompletionStreamFold::default();
    push(&mut fold, chunk(choice(0, "a", Value::Null)));
    push(&mut fold, chunk(choice(1, "x", Value::Null)));
    push(&mut fold, chunk(choice(0, "b", json!("stop"))));
    push(&mut fold, chunk(choice(1, "", json!("length"))));
    push(&mut fold, json!({ "id": "cmpl-1", "choices": [], "usage": usage }));
    assert!(!fold.is_ended());
    push(&mut fold, json!("[DONE]"));
    let choices = [choice(0, "ab", json!("stop")), choice(1, "x", json!("length"))];
    let whole =
        json!({ "id": "cmpl-1", "object": "text_completion", "model": "m", "choices": choices, "usage": usage });
    assert_eq!(fold.response(), &CompletionResponse::read(&whole).expect("reads"));
    assert!(fold.is_ended());
}

#[test]
fn an_error_ends_a_stream_and_its_size_is_bounded() {
    let mut fold = CompletionStreamFold::default();
    push(&mut fold, json!({ "error": { "message": "no", "type": "server_error" } }));
    push(&mut fold, json!("[DONE]"));
    assert_eq!((fold.error().map(|error| error.message.as_str()), fold.is_ended()), (Some("no"), false));
    let mut fold = CompletionStreamFold::new(FoldLimits { bytes_max: 10, ..FoldLimits::default() });
    assert!(fold.push(&SseEvent::of_data("{\"choices\": []}")).is_err());
    assert!(CompletionStreamFold::default().push(&SseEvent::of_data("{")).is_err());
}
