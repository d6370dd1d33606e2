//! Stored policies: what is valid, what they decide, and what they do to texts and JSON.

use std::borrow::Cow;

use assay_node_guardrails::{
    GuardrailAction, GuardrailPolicy, GuardrailRefusal, GuardrailStage, MATCHES_MAX, RuleMatches, TEXT_BYTES_MAX,
    TokenDecision,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const REQUEST: GuardrailStage = GuardrailStage::Request;
const LOG: GuardrailStage = GuardrailStage::Log;

fn policy(stored: Value) -> GuardrailPolicy {
    GuardrailPolicy::parse(&stored).expect("a valid policy")
}

fn with_rules(rules: Value) -> GuardrailPolicy {
    policy(json!({"rules": rules}))
}

/// A policy that masks with all detectors.
fn masking() -> GuardrailPolicy {
    let names = ["private_key", "jwt", "api_key", "email", "iban", "credit_card", "us_ssn", "phone", "ip_address"];
    with_rules(names.iter().map(|name| json!({"name": name, "detector": name, "action": "mask"})).collect())
}

#[test]
fn nothing_stored_means_no_guardrails() {
    for stored in [json!(null), json!({}), json!({"rules": null, "allowed_models": null, "max_output_tokens": null})] {
        let policy = policy(stored);
        assert!(policy.is_empty() && !policy.has_rules(REQUEST));
        assert_eq!(policy.check_model("any"), Ok(()));
        assert_eq!(policy.cap_tokens(None), Ok(TokenDecision::Keep));
    }
}

#[test]
fn errors_name_the_path_and_what_is_valid() {
    let rule = |member: &str, value: Value| {
        let mut rule = json!({"name": "r", "detector": "email", "action": "mask"});
        rule[member] = value;
        json!({"rules": [rule]})
    };
    let cases = [
        (json!([]), ": must be an object"),
        (json!({"models": []}), "models: is unknown; valid are allowed_models, max_output_tokens, rules"),
        (json!({"allowed_models": "gpt"}), "allowed_models: must be a list of at most 200"),
        (
            json!({"allowed_models": ["a", ""]}),
            "allowed_models[1]: must be a text of 1 to 255 bytes, such as `gpt-4o*`",
        ),
        (json!({"max_output_tokens": 5}), "max_output_tokens: must be an object"),
        (json!({"max_output_tokens": {"limit": 0}}), "max_output_tokens.limit: must be a whole number above 0"),
        (
            json!({"max_output_tokens": {"limit": 1, "action": "drop"}}),
            "max_output_tokens.action: must be `cap` or `refuse`",
        ),
        (json!({"rules": vec![json!({}); 51]}), "rules: must be a list of at most 50"),
        (json!({"rules": [null]}), "rules[0]: must be an object"),
        (rule("nam", json!("x")), "rules[0].nam: is unknown; valid are name, detector, pattern"),
        (rule("name", json!("")), "rules[0].name: must be a text of 1 to 100 bytes"),
        (rule("name", json!(null)), "rules[0].name: must be a text of 1 to 100 bytes"),
        (rule("detector", json!("mail")), "rules[0].detector: must be one of email, phone, ip_address, credit_card"),
        (rule("detector", json!(null)), "rules[0]: needs exactly one of `detector` and `pattern`"),
        (rule("pattern", json!("x")), "rules[0]: needs exactly one of `detector` and `pattern`"),
        (rule("case_insensitive", json!(true)), "rules[0].case_insensitive: is for patterns only"),
        (rule("action", json!("redact")), "rules[0].action: must be `block`, `mask` or `report`"),
        (rule("apply_to", json!([])), "rules[0].apply_to: must be a list of `request`, `log` or both"),
        (rule("apply_to", json!(["answer"])), "rules[0].apply_to: must be a list of `request`, `log` or both"),
        (rule("replacement", json!("x".repeat(101))), "rules[0].replacement: has more than 100 bytes"),
        (rule("replacement", json!("a@b.com")), "rules[0].replacement: is itself found by the rule: use another text"),
        (
            json!({"rules": [{"name": "r", "pattern": "(", "action": "mask"}]}),
            "rules[0].pattern: it is no valid pattern: unclosed group",
        ),
        (
            json!({"rules": [{"name": "r", "pattern": "a*", "action": "mask"}]}),
            "rules[0].pattern: it matches the empty text, so it would be found everywhere",
        ),
        (
            json!({"rules": [{"name": "r", "pattern": "a".repeat(1025), "action": "mask"}]}),
            "rules[0].pattern: must have 1 to 1024 bytes",
        ),
        (
            json!({"rules": [
                {"name": "r", "detector": "email", "action": "mask"},
                {"name": "r", "detector": "phone", "action": "mask"},
            ]}),
            "rules[1].name: another rule has this name",
        ),
    ];
    for (stored, expected) in cases {
        let error = GuardrailPolicy::parse(&stored).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
}

#[test]
fn models_are_those_listed() {
    let policy = policy(json!({"allowed_models": ["gpt-4o*", "claude-?"]}));
    for model in ["gpt-4o", "gpt-4o-mini", "claude-3"] {
        assert_eq!(policy.check_model(model), Ok(()));
    }
    let refusal = policy.check_model("o1").expect_err("it is not listed");
    assert_eq!(refusal, GuardrailRefusal::Model { model: "o1".to_owned() });
    assert_eq!(
        refusal.to_string(),
        "the guardrails of the project do not allow the model `o1`: use one that they list"
    );
    assert!(self::policy(json!({"allowed_models": []})).check_model("any").is_err());
}

#[test]
fn output_tokens_are_capped_or_refused() {
    let capped = policy(json!({"max_output_tokens": {"limit": 100}}));
    let refused = policy(json!({"max_output_tokens": {"limit": 100, "action": "refuse"}}));
    for policy in [&capped, &refused] {
        assert_eq!(policy.cap_tokens(Some(100)), Ok(TokenDecision::Keep));
        assert_eq!(policy.cap_tokens(None), Ok(TokenDecision::Set(100)));
    }
    assert_eq!(capped.cap_tokens(Some(101)), Ok(TokenDecision::Set(100)));
    assert_eq!(refused.cap_tokens(Some(101)), Err(GuardrailRefusal::OutputTokens { limit: 100, asked: 101 }));
}

#[test]
fn rules_block_mask_and_report() {
    let policy = with_rules(json!([
        {"name": "keys", "detector": "api_key", "action": "block"},
        {"name": "mail", "detector": "email", "action": "mask", "replacement": "<mail>"},
        {"name": "tickets", "pattern": "ticket-[0-9]+", "case_insensitive": true, "action": "mask", "apply_to": ["log"]},
        {"name": "phones", "detector": "phone", "action": "report", "apply_to": ["request"]},
    ]));
    let key = "sk-aB3dE6gH9jK2mN5pQ8sT1v";
    let text = "a@b.com and c@d.org, TICKET-7, +14155550123";
    let (changed, report) = policy.apply_to_text(REQUEST, text).expect("no key");
    assert_eq!(changed, "<mail> and <mail>, TICKET-7, +14155550123");
    assert_eq!(report.to_metadata(), json!({"mail": 2, "phones": 1}));
    let (changed, report) = policy.apply_to_text(LOG, text).expect("logs are not refused");
    assert_eq!(changed, "<mail> and <mail>, [REDACTED], +14155550123");
    assert_eq!(report.to_metadata(), json!({"mail": 2, "tickets": 1}));
    let refusal = policy.apply_to_text(REQUEST, key).expect_err("a key");
    assert_eq!(refusal, GuardrailRefusal::Rule { rule: "keys".to_owned() });
    assert!(!refusal.to_string().contains(key));
    let (changed, report) = policy.apply_to_text(LOG, key).expect("logs are not refused");
    assert_eq!(changed, "[API_KEY]");
    let expected = RuleMatches { rule: "keys".to_owned(), action: GuardrailAction::Block, matches: 1 };
    assert_eq!(report.rules(), [expected]);
}

#[test]
fn a_text_without_matches_is_the_same_text() {
    let text = "nothing to find";
    let policy = masking();
    let (changed, report) = policy.apply_to_text(REQUEST, text).expect("no refusal");
    assert!(matches!(changed, Cow::Borrowed(same) if std::ptr::eq(same, text)));
    assert!(report.is_empty());
}

#[test]
fn behind_the_last_match_the_rest_is_masked() {
    let policy = with_rules(json!([{"name": "a", "pattern": "a", "action": "mask", "replacement": "x"}]));
    let text = "a".repeat(MATCHES_MAX + 5);
    let (changed, report) = policy.apply_to_text(LOG, &text).expect("no refusal");
    assert_eq!(changed, "x".repeat(MATCHES_MAX + 1));
    assert_eq!(report.to_metadata(), json!({"a": MATCHES_MAX + 1}));
}

#[test]
fn texts_of_a_request_are_masked_where_they_are() {
    let mut body = json!({
        "model": "gpt-4o",
        "user": "ada@example.com",
        "messages": [
            {"role": "user", "content": "I am ada@example.com."},
            {"role": "user", "content": [
                {"type": "text", "text": "call +14155550123"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,4111111111111111"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "4111111111111111"}},
                {"inlineData": {"mimeType": "image/png", "data": "4111111111111111"}},
            ]},
            {"role": "assistant", "tool_calls": [{"function": {
                "name": "send",
                "arguments": "{\"to\" : \"ada@example.com\", \"n\": 1.50, \"x\": \"{\\\"cc\\\":\\\"b@c.org\\\"}\", \"phone\": 4155550123}",
            }}]},
        ],
        "ada@example.com": 1,
    });
    let before = body.clone();
    let report = masking().apply_to_json(REQUEST, &mut body).expect("no refusal");
    let mut expected = before;
    expected["user"] = "[EMAIL]".into();
    expected["messages"][0]["content"] = "I am [EMAIL].".into();
    expected["messages"][1]["content"][0]["text"] = "call [PHONE]".into();
    expected["messages"][2]["tool_calls"][0]["function"]["arguments"] =
        "{\"to\" : \"[EMAIL]\", \"n\": 1.50, \"x\": \"{\\\"cc\\\":\\\"[EMAIL]\\\"}\", \"phone\": 4155550123}".into();
    assert_eq!(body, expected);
    assert_eq!(report.to_metadata(), json!({"email": 4, "phone": 1}));
}

#[test]
fn what_is_no_media_is_looked_at() {
    let mut body = json!([
        "data:text/plain;base64,ada@example.com",
        {"type": "base64", "data": "ada@example.com"},
        {"data": "4111111111111111"},
    ]);
    masking().apply_to_json(LOG, &mut body).expect("no refusal");
    let expected = json!([
        "data:text/plain;base64,[EMAIL]",
        {"type": "base64", "data": "[EMAIL]"},
        {"data": "[CREDIT_CARD]"},
    ]);
    assert_eq!(body, expected);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let mut deep = json!("x");
    for _ in 0..200 {
        deep = Value::Array(vec![deep]);
    }
    assert_eq!(masking().apply_to_json(REQUEST, &mut deep), Err(GuardrailRefusal::Depth { max: 128 }));
    assert!(GuardrailPolicy::default().apply_to_json(REQUEST, &mut deep).is_ok());
    let mut large = json!(vec!["x".repeat(TEXT_BYTES_MAX / 2 + 1); 2]);
    let policy = with_rules(json!([{"name": "a", "pattern": "a", "action": "block", "apply_to": ["request"]}]));
    assert_eq!(policy.apply_to_json(REQUEST, &mut large), Err(GuardrailRefusal::Size { max: TEXT_BYTES_MAX }));
    assert!(policy.apply_to_json(LOG, &mut large).is_ok());
}

#[test]
fn reports_are_merged_by_rule() {
    let policy = masking();
    let report = |text: &str| policy.apply_to_text(LOG, text).expect("no refusal").1;
    let mut merged = report("a@b.com 10.0.0.1");
    merged.merge(report("10.0.0.2 c@d.com e@f.com"));
    assert_eq!(merged.to_metadata(), json!({"email": 3, "ip_address": 2}));
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z@. 0-9+-]{0,20}".prop_map(Value::from),
        prop::sample::select(vec![
            "ada@example.com",
            "+14155550123",
            "x 10.0.0.1 y",
            "{\"a\": \"b@c.com\"}",
            "[\"\\n b@c.com\"]"
        ])
        .prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,3}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Whether two values differ in their texts only, also within texts that are JSON.
fn same_structure(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => {
            let is_json = |text: &str| matches!(serde_json::from_str(text), Ok(Value::Object(_) | Value::Array(_)));
            !is_json(a) || is_json(b)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_structure(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| same_structure(a, b))
        }
        (a, b) => a == b,
    }
}

proptest! {
    #[test]
    fn masking_keeps_the_structure_and_is_done_once(value in json_value()) {
        let policy = masking();
        let mut once = value.clone();
        let report = policy.apply_to_json(REQUEST, &mut once).expect("nothing blocks");
        prop_assert!(same_structure(&value, &once));
        prop_assert_eq!(report.is_empty(), value == once);
        let mut twice = once.clone();
        prop_assert!(policy.apply_to_json(REQUEST, &mut twice).expect("nothing blocks").is_empty());
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn texts_without_digits_and_at_signs_are_unchanged(text in "[a-z {}\",.:é-]{0,200}") {
        let policy = masking();
        let (changed, report) = policy.apply_to_text(LOG, &text).expect("nothing blocks");
        prop_assert_eq!(&changed, &text);
        prop_assert!(report.is_empty());
    }
}
