//! Runs of scorers that call models, with responses of a model that is played here.

use serde_json::{Map, Value, json};

use crate::{AutoevalsPackage, DefaultModels, ModelOperation, RUN_STEPS_MAX, Score, ScorerArguments, ScorerStep};
use crate::{ScorerError, start_scorer};

/// Runs a scorer to its end; `respond` answers each body.
fn run_as(
    package: AutoevalsPackage,
    name: &str,
    input: Value,
    mut respond: impl FnMut(&Value) -> Value,
) -> Result<Score, ScorerError> {
    let (input, config) = (input.as_object().expect("arguments").clone(), Map::new());
    let arguments = ScorerArguments::new(&input, &config).expect("shallow arguments");
    let mut step = start_scorer(name, &arguments, package, &DefaultModels::default())?;
    for _ in 0..RUN_STEPS_MAX {
        match step {
            ScorerStep::Finish(score) => return Ok(score),
            ScorerStep::Call { calls, run } => {
                let responses: Vec<_> = calls.iter().map(|call| respond(&call.body)).collect();
                step = run.resume(&responses)?;
            }
        }
    }
    panic!("{name} takes more than {RUN_STEPS_MAX} steps");
}

fn run(name: &str, input: Value, respond: impl FnMut(&Value) -> Value) -> Result<Score, ScorerError> {
    run_as(AutoevalsPackage::Python, name, input, respond)
}

/// Answers a chat request by a call of the forced tool with these arguments.
fn tool_call(body: &Value, arguments: &Value) -> Value {
    let name = &body["tool_choice"]["function"]["name"];
    assert_eq!(name, &body["tools"][0]["function"]["name"]);
    let call = json!({"id": "1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    json!({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]})
}

/// Answers an embeddings request: the last text first, as providers may reorder. Each text has the numbers of its table row.
fn embeddings(body: &Value, table: &[(&str, [f64; 2])]) -> Value {
    let texts = body["input"].as_array().expect("texts");
    let entry = |(index, text): (usize, &Value)| {
        let row = table.iter().find(|(name, _)| text == name).unwrap_or_else(|| panic!("no row for {text}"));
        json!({"index": index, "embedding": row.1})
    };
    json!({"data": texts.iter().enumerate().rev().map(entry).collect::<Vec<_>>()})
}

fn score(result: Result<Score, ScorerError>) -> f64 {
    result.unwrap_or_else(|error| panic!("{error}")).score.expect("a score")
}

fn message(result: Result<Score, ScorerError>) -> String {
    result.expect_err("no score").to_string()
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn embedding_similarity_scales_the_cosine_from_its_floor() {
    let cases = [
        (json!({}), [1.0, 0.0], 1.0),
        (json!({}), [0.0, 1.0], 0.0),
        (json!({}), [0.0, 0.0], 0.0),
        (json!({}), [0.8, 0.6], (0.8 - 0.7) / 0.3),
        (json!({"expectedMin": 0}), [0.8, 0.6], 0.8),
    ];
    for (options, expected, wanted) in cases {
        let mut input = json!({"output": "o", "expected": "e", "prefix": "p: "});
        input.as_object_mut().expect("an object").extend(options.as_object().expect("an object").clone());
        let found = run("EmbeddingSimilarity", input, |body| {
            assert_eq!(body["model"], "text-embedding-ada-002");
            embeddings(body, &[("p: o", [2.0, 0.0]), ("p: e", expected)])
        });
        assert_near(score(found), wanted);
    }
    let none = run("EmbeddingSimilarity", json!({"output": "o", "expected": null}), |_| json!({}));
    assert_eq!(message(none), "EmbeddingSimilarity needs `expected`, which is missing or null");
    let floor = json!({"output": "o", "expected": "e", "expected_min": 1});
    assert!(message(run("EmbeddingSimilarity", floor, |_| json!({}))).contains("a number from -1 to below 1"));
}

#[test]
fn moderation_goes_by_the_flag_or_by_the_threshold() {
    let result = json!({"results": [{"flagged": true, "category_scores": {"hate": 0.2, "violence": 0.6}}]});
    for (threshold, expected) in [(json!(null), 0.0), (json!(0.5), 0.0), (json!(0.6), 1.0)] {
        let found = run("Moderation", json!({"output": "x", "threshold": threshold}), |body| {
            assert_eq!(*body, json!({"input": "x"}));
            result.clone()
        });
        let found = found.expect("a score");
        assert_eq!(found.score, Some(expected));
        let metadata = found.metadata.expect("metadata");
        assert_eq!(metadata["category_scores"], json!({"hate": 0.2, "violence": 0.6}));
    }
    let text = message(run("Moderation", json!({"output": "x"}), |_| json!({"results": []})));
    assert_eq!(text, "Moderation: in the model's response `results.0.flagged` must be a boolean");
}

#[test]
fn context_relevancy_is_the_part_of_the_context_that_is_selected() {
    let input = json!({"input": "q", "context": ["abcde", "fghij"], "temperature": 0});
    let selected = json!({"sentences": [{"sentence": "abcde", "reasons": []}]});
    let found = run_as(AutoevalsPackage::TypeScript, "ContextRelevancy", input.clone(), |body| {
        assert_eq!((&body["model"], &body["temperature"]), (&json!("gpt-5-mini"), &json!(0)));
        let prompt = body["messages"][0]["content"].as_str().expect("a text");
        assert!(prompt.ends_with("<question>\nq\n</question>\n\n<context>\nabcde\nfghij\n</context>"), "{prompt}");
        tool_call(body, &selected)
    });
    let found = found.expect("a score");
    assert_near(found.score.expect("a number"), 5.0 / 11.0);
    assert_eq!(json!(found.metadata), json!({"relevantSentences": selected["sentences"]}));
    let longer = json!({"sentences": [{"sentence": "x".repeat(50), "reasons": []}]});
    assert_near(score(run("ContextRelevancy", input, |body| tool_call(body, &longer))), 1.0);
    let empty = json!({"input": "q", "context": []});
    assert!(message(run("ContextRelevancy", empty, |_| json!({}))).contains("a context that is not empty"));
}

#[test]
fn context_recall_is_the_mean_of_the_attributions() {
    let input = json!({"input": "q", "expected": "e", "context": "c"});
    for (verdicts, expected) in [(json!([1, 0, 0, 1]), 0.5), (json!([]), 0.0), (json!([true]), 1.0)] {
        let statements: Vec<_> = verdicts
            .as_array()
            .expect("verdicts")
            .iter()
            .map(|verdict| json!({"statement": "s", "attributed": verdict, "reason": "r"}))
            .collect();
        let found = run("ContextRecall", input.clone(), |body| tool_call(body, &json!({"statements": statements})));
        assert_near(score(found), expected);
    }
    let text =
        message(run("ContextRecall", input, |body| tool_call(body, &json!({"statements": [{"attributed": 2}]}))));
    assert_eq!(text, "ContextRecall: in the model's response `attributed` must be 0 or 1");
}

#[test]
fn context_precision_is_the_verdict() {
    let input = json!({"input": "q", "expected": "e", "context": "c"});
    let verdict = json!({"reason": "r", "verdict": 1});
    let found = run("ContextPrecision", input.clone(), |body| tool_call(body, &verdict)).expect("a score");
    assert_eq!((found.score, json!(found.metadata)), (Some(1.0), json!({"precision": verdict})));
    let text = message(run("ContextPrecision", input, |_| json!({"choices": [{"message": {"content": "1"}}]})));
    assert!(
        text.contains("`choices.0.message.tool_calls.0.function.name` must be the name of the forced tool"),
        "{text}"
    );
}

#[test]
fn context_entity_recall_matches_entities_by_their_embeddings() {
    let input = json!({"expected": "E", "context": "C"});
    let table = [("x", [1.0, 0.0]), ("y", [0.0, 1.0]), ("x'", [1.0, 0.0])];
    let respond = |of_context: Value| {
        move |body: &Value| match body["messages"][0]["content"].as_str() {
            Some(prompt) if prompt.contains("<text>\nE\n") => tool_call(body, &json!({"entities": ["x", "y"]})),
            Some(_) => tool_call(body, &json!({"entities": of_context})),
            None => embeddings(body, &table),
        }
    };
    assert_near(score(run("ContextEntityRecall", input.clone(), respond(json!(["x'"])))), 0.5);
    assert_near(score(run("ContextEntityRecall", input.clone(), respond(json!(["y", "x'"])))), 1.0);
    assert_near(score(run("ContextEntityRecall", input, respond(json!([])))), 0.0);
}

#[test]
fn faithfulness_is_the_mean_verdict_on_the_statements() {
    let input = json!({"input": "q", "output": "o", "context": "c"});
    let verdicts =
        json!([{"statement": "a", "verdict": 1, "reason": ""}, {"statement": "b", "verdict": 0, "reason": ""}]);
    let found = run("Faithfulness", input.clone(), |body| match body["tool_choice"]["function"]["name"].as_str() {
        Some("extract_statements") => tool_call(body, &json!({"statements": ["a", "b"]})),
        _ => {
            let prompt = body["messages"][0]["content"].as_str().expect("a text");
            assert!(prompt.contains("<statements>\n[\"a\",\"b\"]\n</statements>"), "{prompt}");
            tool_call(body, &json!({"faithfulness": verdicts}))
        }
    });
    assert_near(score(found), 0.5);
    let none = run("Faithfulness", input, |body| tool_call(body, &json!({"statements": []})));
    assert_near(score(none), 0.0);
}

#[test]
fn answer_relevancy_is_the_mean_similarity_of_questions() {
    let input = json!({"input": "asked", "output": "o", "context": "c", "strictness": 2, "embedding_model": "m"});
    let respond = |noncommittal: i32| {
        let mut count = 0;
        move |body: &Value| {
            if body["tools"].is_null() {
                assert_eq!(body["model"], "m");
                return embeddings(body, &[("q1", [1.0, 0.0]), ("q2", [0.0, 1.0]), ("asked", [1.0, 0.0])]);
            }
            count += 1;
            tool_call(body, &json!({"question": format!("q{count}"), "noncommittal": noncommittal}))
        }
    };
    assert_near(score(run("AnswerRelevancy", input.clone(), respond(0))), 0.5);
    assert_near(score(run("AnswerRelevancy", input, respond(1))), 0.0);
    let many = json!({"input": "asked", "output": "o", "context": "c", "strictness": 17});
    assert!(message(run("AnswerRelevancy", many, respond(0))).contains("a whole number from 1 to 16"));
}

#[test]
fn answer_similarity_is_the_cosine_without_a_floor() {
    let found = run("AnswerSimilarity", json!({"output": "o", "expected": "e"}), |body| {
        embeddings(body, &[("o", [1.0, 0.0]), ("e", [0.6, 0.8])])
    });
    let found = found.expect("a score");
    assert_near(found.score.expect("a number"), 0.6);
    assert_eq!(found.name, "AnswerSimilarity");
}

#[test]
fn answer_correctness_weighs_statements_and_similarity() {
    let respond = |classes: Value| {
        move |body: &Value| match body["tools"].is_null() {
            true => embeddings(body, &[("o", [1.0, 0.0]), ("e", [0.6, 0.8])]),
            false => tool_call(body, &classes),
        }
    };
    let input = json!({"input": "q", "output": "o", "expected": "e"});
    let classes = json!({"TP": ["a"], "FP": ["b"], "FN": ["c"]});
    assert_near(score(run("AnswerCorrectness", input.clone(), respond(classes.clone()))), 0.75 * 0.5 + 0.25 * 0.6);
    let nothing = json!({"TP": [], "FP": [], "FN": []});
    assert_near(score(run("AnswerCorrectness", input.clone(), respond(nothing))), 0.25 * 0.6);
    let weights = |factuality: f64, similarity: f64| {
        let mut input = input.clone();
        input["factualityWeight"] = json!(factuality);
        input["answerSimilarityWeight"] = json!(similarity);
        run("AnswerCorrectness", input, respond(classes.clone()))
    };
    assert_near(score(weights(1.0, 0.0)), 0.5);
    assert_near(score(weights(0.0, 2.0)), 0.6);
    assert!(message(weights(0.0, 0.0)).contains("above 0 if the other weight is 0"));
    assert!(message(weights(-1.0, 2.0)).contains("a number that is not negative"));
}

#[test]
fn every_scorer_but_judges_starts_and_names_what_it_needs() {
    for function in crate::GLOBAL_FUNCTIONS {
        let (input, config) = (Map::new(), Map::new());
        let arguments = ScorerArguments::new(&input, &config).expect("shallow arguments");
        let models = DefaultModels::default();
        let found = start_scorer(function.name, &arguments, AutoevalsPackage::TypeScript, &models);
        match (function.kind, found) {
            (crate::GlobalFunctionKind::Stepwise, Err(ScorerError::MissingArgument { scorer, .. })) => {
                assert_eq!(scorer, function.name);
            }
            (crate::GlobalFunctionKind::Native, Ok(_) | Err(ScorerError::MissingArgument { .. })) => {}
            (crate::GlobalFunctionKind::Native | crate::GlobalFunctionKind::Stepwise, other) => {
                panic!("{}: {other:?}", function.name)
            }
            (_, found) => assert!(matches!(found, Err(ScorerError::NotComputed { .. })), "{}", function.name),
        }
    }
}

#[test]
fn a_run_takes_one_response_for_each_call() {
    let input = json!({"output": "o"}).as_object().expect("an object").clone();
    let config = Map::new();
    let arguments = ScorerArguments::new(&input, &config).expect("shallow arguments");
    let step = start_scorer("Moderation", &arguments, AutoevalsPackage::Python, &DefaultModels::default());
    let Ok(ScorerStep::Call { calls, run }) = step else { panic!("no call: {step:?}") };
    assert_eq!(calls[0].operation, ModelOperation::Moderations);
    assert!(run.resume(&[]).is_err());
}
