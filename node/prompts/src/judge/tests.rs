//! Tests of judges: their questions and their verdicts.

use serde_json::{Value, json};

use super::*;

fn judge(parser: Value) -> Judge {
    let mut parser = parser;
    parser["type"] = json!("llm_classifier");
    Judge::read(&parser).expect("a valid parser").expect("a judge")
}

fn asked(judge: &Judge, messages: Value, form: JudgeForm) -> Map<String, Value> {
    let mut body = Map::from_iter([
        ("messages".to_owned(), messages),
        ("tools".to_owned(), json!([1])),
        ("response_format".to_owned(), json!({"type": "json_object"})),
        ("temperature".to_owned(), json!(0)),
    ]);
    judge.ask(&mut body, form);
    body
}

fn called(arguments: &str) -> Value {
    json!({"tool_calls": [{"id": "1", "function": {"name": SELECT_CHOICE, "arguments": arguments}}]})
}

#[test]
fn choices_keep_their_order_and_scores_win_over_an_empty_list() {
    let cases = [
        (json!({"choice_scores": {"b": 1, "a": 0}, "choice": []}), vec!["b", "a"]),
        (json!({"choice_scores": {}, "choice": ["x", "y"]}), vec!["x", "y"]),
        (json!({"choice": ["x"], "allow_no_match": true, "allow_skip": true}), vec!["x", "No match", "Skip"]),
        (json!({"choice_scores": {"Skip": 0.5, "a": 1}, "allow_skip": true}), vec!["Skip", "a"]),
    ];
    for (parser, expected) in cases {
        assert_eq!(judge(parser).choices().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn wrong_parsers_are_named_by_their_path() {
    let cases = [
        (json!({}), "prompt_data.parser: a judge has one choice or more: write `choice_scores` or `choice`"),
        (
            json!({"choice_scores": {"a": 2}}),
            "prompt_data.parser.choice_scores.a: 2 is not a score: write a number from 0 to 1",
        ),
        (json!({"choice_scores": []}), "prompt_data.parser.choice_scores: expected an object, found an array"),
        (json!({"choice": [1]}), "prompt_data.parser.choice[0]: expected a string, found a number"),
        (json!({"choice": ["a"], "use_cot": 1}), "prompt_data.parser.use_cot: expected a boolean, found a number"),
    ];
    for (mut parser, expected) in cases {
        parser["type"] = json!("llm_classifier");
        assert_eq!(Judge::read(&parser).expect_err(expected).to_string(), expected);
    }
    assert_eq!(Judge::read(&json!({"type": "other"})), Ok(None));
}

#[test]
fn a_judge_is_asked_by_a_forced_tool_whose_reasons_come_first() {
    let judge = judge(json!({"use_cot": true, "choice_scores": {"YES": 1, "NO": 0}}));
    let body = asked(&judge, json!([{"role": "user", "content": "q"}]), JudgeForm::Tool);
    let function = &body["tools"][0]["function"];
    assert_eq!(function["name"], SELECT_CHOICE);
    let properties = function["parameters"]["properties"].as_object().expect("an object");
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["reasons", "choice"]);
    assert_eq!(function["parameters"]["required"], json!(["reasons", "choice"]));
    assert_eq!(properties["choice"]["enum"], json!(["YES", "NO"]));
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": SELECT_CHOICE}}));
    assert!(!body.contains_key("response_format") && body.contains_key("temperature"));
}

#[test]
fn a_model_without_tools_answers_by_a_schema() {
    let judge = judge(json!({"choice": ["a"]}));
    let body = asked(&judge, json!([]), JudgeForm::ResponseFormat);
    let schema = &body["response_format"]["json_schema"]["schema"];
    assert_eq!((&schema["required"], schema["properties"].get("reasons")), (&json!(["choice"]), None));
    assert!(!body.contains_key("tools") && !body.contains_key("tool_choice"));
    let verdict = judge.verdict(&json!({"content": "{\"choice\": \" a \"}"}), JudgeForm::ResponseFormat);
    assert_eq!(verdict.map(|verdict| verdict.choice), Ok("a".to_owned()));
}

#[test]
fn the_instruction_is_in_the_last_user_message() {
    let judge = judge(json!({"choice": ["a"]}));
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let body =
        asked(&judge, json!([message("user", "x"), message("user", "y"), message("assistant", "z")]), JudgeForm::Tool);
    let text = body["messages"][1]["content"].as_str().expect("a text");
    assert!(text.starts_with("y\n") && text.contains(SELECT_CHOICE) && text.contains("\"a\""), "{text}");
    assert_eq!((&body["messages"][0]["content"], &body["messages"][2]["content"]), (&json!("x"), &json!("z")));
    let parts = asked(&judge, json!([{"role": "user", "content": [{"type": "text", "text": "x"}]}]), JudgeForm::Tool);
    assert_eq!(parts["messages"][0]["content"][1]["type"], "text");
    let none = asked(&judge, json!([message("system", "x")]), JudgeForm::Tool);
    assert_eq!(none["messages"][1]["role"], "user");
}

#[test]
fn a_verdict_is_a_score_or_a_classification() {
    let judge = judge(json!({"choice_scores": {"YES": 1, "NO": 0}, "allow_no_match": true, "use_cot": true}));
    let verdict =
        judge.verdict(&called("{\"reasons\": \"because\", \"choice\": \"YES \"}"), JudgeForm::Tool).expect("a choice");
    // the members have the order of the recorded answers
    assert_eq!(
        verdict.score_value("close-enough-judge").to_string(),
        r#"{"name":"close-enough-judge","score":1,"metadata":{"rationale":"because","choice":"YES"}}"#
    );
    assert_eq!(
        verdict.classification_value("c").to_string(),
        r#"{"name":"c","id":"YES","label":"YES","metadata":{"rationale":"because"}}"#
    );
    let none = judge.verdict(&called("{\"choice\": \"No match\"}"), JudgeForm::Tool).expect("a choice");
    assert_eq!(none.score_value("s").to_string(), r#"{"name":"s","score":null,"metadata":{"choice":"No match"}}"#);
    assert_eq!(none.classification_value("s"), Value::Null);
    let object = json!({"tool_calls": [{"function": {"name": SELECT_CHOICE, "arguments": {"choice": "NO"}}}]});
    assert_eq!(judge.verdict(&object, JudgeForm::Tool).map(|verdict| verdict.score), Ok(json!(0)));
}

#[test]
fn choices_without_scores_have_no_score() {
    let verdict = judge(json!({"choice": ["0.5"]})).verdict(&called("{\"choice\": \"0.5\"}"), JudgeForm::Tool);
    let value = verdict.expect("a choice").score_value("s");
    assert_eq!(value, json!({"name": "s", "score": null, "metadata": {"choice": "0.5"}}));
}

#[test]
fn an_answer_without_a_choice_says_why() {
    let judge = judge(json!({"choice": ["a", "b"]}));
    let cases = [
        (json!({"content": "a"}), "the judge did not call the tool `select_choice`"),
        (
            json!({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}),
            "the judge did not call the tool `select_choice` but `f`",
        ),
        (called("{"), "the judge's choice cannot be read: EOF"),
        (called("{}"), "the judge's choice cannot be read: the arguments have no text `choice`"),
        (called("{\"choice\": \"c\"}"), "the judge chose \"c\", which is not one of the choices [\"a\", \"b\"]"),
    ];
    for (message, expected) in cases {
        let why = judge.verdict(&message, JudgeForm::Tool).expect_err(expected).to_string();
        assert!(why.starts_with(expected), "{why}");
    }
}
