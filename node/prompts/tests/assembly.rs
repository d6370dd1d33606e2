//! Requests of whole prompts, as their stored form and the arguments of an invocation make them.

use std::convert::Infallible;

use assay_node_prompts::{
    AttachmentReference, AttachmentSource, ChatDraft, ChatRequest, ParamNames, Prompt, PromptArguments,
    PromptCacheMode, PromptError, PromptInvocation, assemble,
};
use serde_json::{Value, json};

fn draft(data: Value, invocation: PromptInvocation) -> Result<ChatDraft, PromptError> {
    assemble(&Prompt::read(&data)?, &invocation)
}

fn filled(draft: ChatDraft) -> ChatRequest {
    let request: Result<_, Infallible> = draft.fill(|reference| Ok(format!("data:{}", reference.filename)));
    request.unwrap_or_else(|never| match never {})
}

fn with_input(input: Value) -> PromptInvocation {
    let variables = PromptArguments { input, ..PromptArguments::default() }.variables();
    PromptInvocation { variables, ..PromptInvocation::default() }
}

fn request(data: Value, invocation: PromptInvocation) -> Value {
    Value::Object(filled(draft(data, invocation).expect("a valid prompt")).body)
}

fn chat(messages: Value) -> Value {
    json!({"prompt": {"type": "chat", "messages": messages}, "options": {"model": "m"}})
}

fn content(parts: Value, input: Value) -> Value {
    request(chat(json!([{"role": "user", "content": parts}])), with_input(input))["messages"][0]["content"].clone()
}

fn refused(data: Value, invocation: PromptInvocation) -> String {
    draft(data, invocation).expect_err("a wrong prompt").to_string()
}

#[test]
fn a_chat_prompt_is_a_request_with_its_params() {
    let data = json!({
        "prompt": {
            "type": "chat",
            "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "What is {{input.q}} or {{q}}?"}],
            "tools": "[{\"type\": \"function\", \"function\": {\"name\": \"{{tool}}\", \"parameters\": {}}}]",
        },
        "options": {
            "model": "gpt-{{x}}", "position": "0", "endpoint_name": "secret",
            "params": {
                "temperature": 0, "topP": 0.5, "topK": 3, "top_k": 4, "maxOutputTokens": 10, "use_cache": false, "stop": null,
                "response_format": null, "reasoning_enabled": true, "custom": {"a": "{{q}}"}, "messages": 1, "model": "n",
            },
        },
    });
    let input = json!({"q": "2+2", "tool": "t"});
    let filled = filled(draft(data.clone(), with_input(input.clone())).expect("a valid prompt"));
    let expected = json!({
        "model": "gpt-{{x}}",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "What is 2+2 or 2+2?"}],
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {}}}],
        "temperature": 0, "top_p": 0.5, "top_k": 4, "max_tokens": 10, "reasoning_enabled": true, "custom": {"a": "{{q}}"},
    });
    assert_eq!(Value::Object(filled.body), expected);
    assert_eq!((filled.cache, filled.endpoint_name.as_deref()), (PromptCacheMode::Never, Some("secret")));
    let google = PromptInvocation { param_names: ParamNames::Google, ..with_input(input) };
    let google = request(data, google);
    assert_eq!((&google["topP"], &google["topK"], &google["maxOutputTokens"]), (&json!(0.5), &json!(3), &json!(10)));
}

#[test]
fn messages_of_the_request_are_appended_unrendered() {
    let messages = vec![json!({"role": "system", "content": "own"}), json!({"role": "user", "content": "{{x}}"})];
    let invocation = PromptInvocation { messages, ..with_input(json!({"x": 1})) };
    let with_system = request(chat(json!([{"role": "system", "content": "{{x}}"}])), invocation.clone());
    assert_eq!(
        with_system["messages"],
        json!([{"role": "system", "content": "1"}, {"role": "user", "content": "{{x}}"}])
    );
    let without = request(chat(json!([])), invocation.clone());
    assert_eq!(without["messages"].as_array().map(Vec::len), Some(2));
    let completion = json!({"prompt": {"type": "completion", "content": "{{x}}"}, "options": {"model": "m"}});
    assert!(refused(completion.clone(), invocation).starts_with("messages: a completion prompt takes no messages"));
    let alone = request(completion, with_input(json!({"x": 1})));
    assert_eq!(alone["messages"], json!([{"role": "user", "content": "1"}]));
}

#[test]
fn all_texts_of_messages_are_rendered_and_empty_content_is_left_out() {
    let messages = json!([
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "{{x}}", "type": "function", "function": {"name": "{{x}}", "arguments": "{\"a\": {{x}}}"}},
        ], "reasoning": [{"content": "{{x}}"}]},
        {"role": "tool", "content": "{{x}}", "tool_call_id": "{{x}}"},
        {"role": "user", "content": [{"type": "text", "text": "{{x}}", "cache_control": {"type": "ephemeral"}}, {"type": "new", "y": "{{x}}"}]},
        {"role": "user", "content": ""},
        {"role": "developer"},
    ]);
    let expected = json!([
        {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "1", "arguments": "{\"a\": 1}"}},
        ], "reasoning": [{"content": "{{x}}"}]},
        {"role": "tool", "tool_call_id": "1", "content": "1"},
        {"role": "user", "content": [{"type": "text", "text": "1", "cache_control": {"type": "ephemeral"}}, {"type": "new", "y": "{{x}}"}]},
        {"role": "user"},
        {"role": "developer"},
    ]);
    assert_eq!(request(chat(messages), with_input(json!({"x": 1})))["messages"], expected);
}

#[test]
fn a_response_schema_is_rendered_or_a_template_itself() {
    let schema = |schema: Value, x: Value| {
        let mut data = chat(json!([]));
        data["options"]["params"] =
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "{{x}}", "schema": schema}}});
        draft(data, with_input(json!({"x": x})))
            .map(|draft| filled(draft).body["response_format"]["json_schema"].clone())
    };
    let rendered = schema(json!({"{{x}}": ["{{x}}", 1]}), json!("a")).expect("a schema");
    assert_eq!(rendered, json!({"name": "{{x}}", "schema": {"{{x}}": ["a", 1]}}));
    assert_eq!(
        schema(json!("{{x}}"), json!({"type": "object"})).expect("a schema")["schema"],
        json!({"type": "object"})
    );
    assert_eq!(schema(json!(" {{x}} "), Value::Null).expect("a schema")["schema"], Value::Null);
    let why = schema(json!("{{x}}"), json!("no")).expect_err("no JSON").to_string();
    assert!(why.contains("schema: the rendered text is not valid JSON"), "{why}");
}

#[test]
fn a_tag_with_a_list_of_images_is_a_part_for_each() {
    let stored = |filename: &str, content_type: &str| json!({"type": "braintrust_attachment", "key": "k", "filename": filename, "content_type": content_type});
    let image = json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "{{ images }}", "detail": "low"}}]);
    let input = json!({"images": [stored("a.png", "image/png"), "https://x/y", stored("b.pdf", "application/pdf")]});
    let expected = json!([
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://x/y", "detail": "low"}},
        {"type": "file", "file": {"filename": "b.pdf", "file_data": "data:b.pdf"}},
    ]);
    assert_eq!(content(image.clone(), input), expected);
    assert_eq!(content(image.clone(), json!({"images": []})), json!([{"type": "text", "text": "a"}]));
    assert_eq!(
        content(image.clone(), json!({"images": stored("a.png", "image/png")}))[1]["image_url"]["url"],
        "data:a.png"
    );
    assert_eq!(content(image.clone(), json!({"images": ["a", 1]}))[1]["image_url"]["url"], "[\"a\",1]");
    assert_eq!(content(image, json!({"images": "https://z"}))[1]["image_url"]["url"], "https://z");
    let file = json!([{"type": "file", "file": {"file_data": "{{f}}"}}]);
    let expected = json!([{"type": "file", "file": {"file_data": "data:b.pdf", "filename": "b.pdf"}}]);
    assert_eq!(content(file, json!({"f": stored("b.pdf", "application/pdf")})), expected);
    let text = content(json!("see {{f}}"), json!({"f": stored("b.pdf", "application/pdf")}));
    assert!(text.as_str().is_some_and(|text| text.starts_with("see {\"type\":\"braintrust_attachment\"")), "{text}");
}

#[test]
fn attachments_are_told_before_they_are_filled() {
    let url = json!({"type": "external_attachment", "url": "s3://b/o", "filename": "f", "content_type": "image/png"});
    let messages = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "{{i.0}}"}}]}]);
    let draft = draft(chat(messages), with_input(json!({"i": [url]}))).expect("a valid prompt");
    let source = AttachmentSource::External { url: "s3://b/o".to_owned() };
    let expected = AttachmentReference { source, filename: "f".to_owned(), content_type: "image/png".to_owned() };
    assert_eq!(draft.attachments().collect::<Vec<_>>(), [&expected]);
    assert_eq!(draft.fill(|_| Err("gone")).map(|_| ()), Err("gone"));
}

#[test]
fn a_judge_reads_messages_as_a_transcript() {
    let mut data = chat(json!([{"role": "user", "content": "{{thread}}"}]));
    let thread = json!({"thread": [{"role": "user", "content": "hi"}]});
    let plain = request(data.clone(), with_input(thread.clone()));
    assert_eq!(plain["messages"][0]["content"], "[{\"role\":\"user\",\"content\":\"hi\"}]");
    data["parser"] = json!({"type": "llm_classifier", "use_cot": false, "choice_scores": {"A": 1}});
    let judged = request(data, with_input(thread));
    let text = judged["messages"][0]["content"].as_str().expect("a text");
    assert!(text.starts_with("User:\n  hi\n"), "{text}");
    assert_eq!(judged["tools"][0]["function"]["name"], "select_choice");
}

#[test]
fn template_formats_are_those_of_the_prompt() {
    for (format, expected) in
        [("mustache", "1 "), ("nunjucks", "1 1"), ("none", "{{ x }} {{ x | string }}"), ("other", "1 ")]
    {
        let mut data = chat(json!([{"role": "user", "content": "{{ x }} {{ x | string }}"}]));
        data["template_format"] = json!(format);
        assert_eq!(request(data, with_input(json!({"x": 1})))["messages"][0]["content"], expected, "{format}");
    }
}

#[test]
fn wrong_prompts_are_refused_with_the_path() {
    let message = |message: Value| chat(json!([{"role": "user", "content": "a"}, message]));
    let tools =
        |tools: &str| json!({"prompt": {"type": "chat", "messages": [], "tools": tools}, "options": {"model": "m"}});
    let cases = [
        (json!({"prompt": {"type": "chat", "messages": []}}), "No model specified"),
        (message(json!(1)), "prompt_data.prompt.messages[1]: expected an object, found a number"),
        (message(json!({"content": "a"})), "prompt_data.prompt.messages[1].role: expected a string, found null"),
        (
            message(json!({"role": "x"})),
            "prompt_data.prompt.messages[1].role: \"x\" is not a role: write one of system",
        ),
        (
            message(json!({"role": "user", "content": 1})),
            "prompt_data.prompt.messages[1].content: expected a string or an array",
        ),
        (
            message(json!({"role": "user", "content": ["a"]})),
            "prompt_data.prompt.messages[1].content[0]: expected an object",
        ),
        (
            message(json!({"role": "user", "content": "{{#a}}"})),
            "prompt_data.prompt.messages[1].content: line 1, column 1: unclosed",
        ),
        (
            message(json!({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})),
            "prompt_data.prompt.messages[1].content[0].image_url.url: expected a string",
        ),
        (tools("{"), "prompt_data.prompt.tools: the rendered text is not valid JSON"),
        (tools("{}"), "prompt_data.prompt.tools: expected an array, found an object"),
        (tools("[{\"type\": \"function\"}]"), "prompt_data.prompt.tools[0].function.name: expected a string"),
        (tools("[{}]"), "prompt_data.prompt.tools[0].type: a tool has the type `function`"),
    ];
    for (data, expected) in cases {
        let why = refused(data, with_input(Value::Null));
        assert!(why.starts_with(expected), "{why}");
    }
    let strict = PromptInvocation { is_strict: true, ..with_input(json!({})) };
    assert_eq!(
        refused(chat(json!([{"role": "user", "content": "{{gone}}"}])), strict),
        "Variable 'gone' does not exist."
    );
    let messages = PromptInvocation { messages: vec![json!({"role": 1})], ..with_input(Value::Null) };
    assert_eq!(refused(chat(json!([])), messages), "messages[0].role: expected a string, found a number");
    let mut cache = chat(json!([]));
    cache["options"]["params"] = json!({"use_cache": "no"});
    assert_eq!(
        refused(cache, with_input(Value::Null)),
        "prompt_data.options.params.use_cache: expected a boolean, found a string"
    );
}
