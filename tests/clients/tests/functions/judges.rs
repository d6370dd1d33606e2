//! Judges of autoevals and ours: the same choices in the same order, and the same score for the same answer.

use assay_test_clients::python::{command, folder, judges};
use assay_test_clients::suite::covered;
use serde_json::{Value, json};

use crate::{FunctionNode, printed};

/// Judgements by each: 23 choices of the judges and 3 of a judge of our own, with reasons and without.
const JUDGEMENTS: usize = 2 * (23 + 3);

/// What a request of a judge makes the model do.
#[derive(Debug, PartialEq)]
struct JudgeQuestion {
    model: Value,
    temperature: Value,
    tools: Vec<Value>,
    tool_choice: Value,
    /// Types of the tool's arguments by their names, in the order in which the model writes them.
    arguments: Vec<(String, Value)>,
    choices: Value,
    required: Value,
    roles: Vec<Value>,
}

impl JudgeQuestion {
    fn of(request: &Value) -> JudgeQuestion {
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let parameters = &tools[0]["function"]["parameters"];
        let properties = parameters["properties"].as_object().expect("properties");
        JudgeQuestion {
            model: request["model"].clone(),
            temperature: request["temperature"].clone(),
            tools: tools.iter().map(|tool| json!([tool["type"], tool["function"]["name"]])).collect(),
            tool_choice: request["tool_choice"].clone(),
            arguments: properties.iter().map(|(name, schema)| (name.clone(), schema["type"].clone())).collect(),
            choices: properties["choice"]["enum"].clone(),
            required: parameters["required"].clone(),
            roles: messages(request).map(|message| message["role"].clone()).collect(),
        }
    }
}

fn messages(request: &Value) -> impl Iterator<Item = &Value> {
    request["messages"].as_array().into_iter().flatten()
}

#[test]
fn judges_ask_and_score_as_those_of_autoevals() {
    let Some(python) = covered("judges of autoevals", judges()) else { return };
    let served = FunctionNode::start();
    let (url, key) = served.node.caller();
    let home = tempfile::tempdir().expect("a directory");
    let mut command = command(&python, home.path(), url, key);
    command.arg(folder().join("judges.py")).args([&served.provider.origin(), url, key]);
    let found = printed(&mut command).unwrap_or_else(|error| panic!("{error:#}\n{}", served.node.log()));
    let pairs: Vec<[Value; 2]> = serde_json::from_value(found).expect("pairs of results");
    let asked = served.asked();
    assert_eq!((pairs.len(), asked.len()), (JUDGEMENTS, 2 * JUDGEMENTS));
    for ([theirs, ours], asked) in pairs.iter().zip(asked.chunks(2)) {
        assert_eq!(JudgeQuestion::of(&asked[0]), JudgeQuestion::of(&asked[1]));
        assert_eq!(theirs["score"].as_f64(), ours["score"].as_f64(), "{theirs} {ours}");
        assert_eq!((&theirs["name"], &theirs["metadata"]), (&ours["name"], &ours["metadata"]));
        // what is judged reaches the model as it is
        for given in ["2 & more [choose ", "what is <1 + 1>?"] {
            let is_in = |request: &Value| messages(request).any(|message| message.to_string().contains(given));
            assert_eq!(is_in(&asked[0]), is_in(&asked[1]), "{given}: {asked:?}");
        }
    }
}
