//! Arbitrary prompts, arguments and answers: they have a value or an error, and never end the program.

use assay_node_prompts::{
    InvokeMode, Judge, JudgeForm, Prompt, PromptArguments, PromptInvocation, ToolCatalog, ToolLoop, ToolSource,
    ToolStep, answer_value, assemble, merge_overrides, take_trace, thread_variables, transcript,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names of members that prompts and answers have.
const NAMES: &str = "prompt messages role content type text tools options model params image_url url file file_data \
    tool_calls function name arguments id parser choice choice_scores template_format response_format json_schema schema \
    trace trace_ref";
/// Texts that have a meaning somewhere.
const TEXTS: &str = "chat completion user system assistant tool text image_url file llm_classifier {{a}} {{#a}}x{{/a}} {{ \
    {%if+a%} nunjucks add {} [{}] function ü";

/// Values with known names and texts, so that many are almost right.
fn values() -> impl Strategy<Value = Value> {
    let words = |words: &'static str| prop::sample::select(words.split_whitespace().collect::<Vec<_>>());
    let leaf = prop_oneof![
        2 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        6 => words(TEXTS).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        let name = words(NAMES);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            2 => prop::collection::vec((name, inner), 0..7).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

/// A prompt that is right but for its messages, tools and params.
fn almost(messages: Value, params: Value, format: &str) -> Value {
    json!({
        "prompt": {"type": "chat", "messages": messages},
        "options": {"model": "m", "params": params},
        "template_format": format,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_prompt_is_assembled_or_refused(data in values(), overrides in values(), input in values(), is_strict in any::<bool>()) {
        let (mut merged, mut input) = (data.clone(), input);
        take_trace(&mut input);
        let _ = merge_overrides(&mut merged, &overrides);
        let variables = PromptArguments { input, ..PromptArguments::default() }.variables();
        let invocation = PromptInvocation { variables, is_strict, ..PromptInvocation::default() };
        let format = if is_strict { "nunjucks" } else { "mustache" };
        let prompts = [
            data.clone(),
            merged,
            almost(data.clone(), overrides.clone(), format),
            almost(json!([data.clone()]), overrides.clone(), format),
            almost(json!([{"role": "user", "content": [data.clone()]}]), overrides.clone(), format),
            almost(json!([{"role": "user", "content": data}]), overrides, format),
        ];
        for prompt in prompts.iter().filter_map(|data| Prompt::read(data).ok()) {
            prompt.mentions_thread();
            if let Ok(draft) = assemble(&prompt, &invocation) {
                let attachments = draft.attachments().len();
                let mut asked = 0;
                let request = draft.fill(|_| { asked += 1; Ok::<_, ()>("data:".to_owned()) }).expect("all are there");
                prop_assert_eq!(asked, attachments);
                prop_assert!(request.body["messages"].is_array());
            }
        }
    }

    #[test]
    fn any_answer_has_a_value_or_an_error(message in values(), parser in values()) {
        for mode in [InvokeMode::Auto, InvokeMode::Parallel, InvokeMode::Json, InvokeMode::Text] {
            let _ = answer_value(&message, mode, true);
        }
        let judge = Judge::read(&json!({"type": "llm_classifier", "choice": ["a"]})).expect("valid").expect("a judge");
        for form in [JudgeForm::Tool, JudgeForm::ResponseFormat] {
            let _ = judge.verdict(&message, form);
        }
        let _ = Judge::read(&parser);
        let called = json!({"tool_calls": [{"id": parser, "function": {"name": "add", "arguments": "{}"}}, message.clone()]});
        for message in [message.clone(), called] {
            let source = ToolSource { slug: "add".to_owned(), ..ToolSource::default() };
            let catalog = ToolCatalog::new(&[], vec![(source, ())]).expect("one tool");
            let mut tools = ToolLoop::new(Map::new(), catalog, InvokeMode::Auto);
            let calls = match tools.answered(&message) {
                Ok(ToolStep::Run(calls)) => calls.len(),
                _ => 0,
            };
            tools.ran(vec![Ok(message); calls]);
            prop_assert_eq!(tools.request().get("messages").and_then(Value::as_array).map_or(0, Vec::len), calls + usize::from(calls > 0));
        }
    }

    #[test]
    fn any_thread_has_variables_and_a_transcript(messages in values()) {
        let variables = thread_variables(&messages);
        prop_assert!(variables["thread"].is_array());
        transcript(messages.as_array().map(Vec::as_slice).unwrap_or_default());
    }
}
