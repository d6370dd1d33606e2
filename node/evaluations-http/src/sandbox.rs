//! Sandboxes as tasks: bundles whose evaluator is run with its own task and scorers (F-01).

use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations::InvokedFunction;
use serde_json::{Value, json};

/// Provider whose sandboxes are ordinary bundles.
const PROVIDER: &str = "lambda";

/// Returns the task and the scorers of a sandbox, or `None` for other functions.
///
/// `name` chooses the evaluator. Otherwise the function names it.
pub fn evaluator_of(
    function: &InvokedFunction,
    name: Option<&str>,
) -> Option<Result<(InvokedFunction, Vec<InvokedFunction>), Refusal>> {
    let location = &function.function_data["data"]["location"];
    (location["type"] == "sandbox").then(|| evaluator(function, location, name))
}

fn evaluator(
    function: &InvokedFunction,
    location: &Value,
    name: Option<&str>,
) -> Result<(InvokedFunction, Vec<InvokedFunction>), Refusal> {
    check_provider(&location["sandbox_spec"])?;
    let name = name
        .or(location["eval_name"].as_str())
        .ok_or_else(|| Refusal::bad("the sandbox names no evaluator: send its name in `name`"))?;
    let at = |position: Value, function_type: &str, label: &str| {
        let mut part = function.clone();
        part.function_type = Some(function_type.to_owned());
        part.name = label.to_owned();
        part.function_data["data"]["location"] = json!({"type": "experiment", "eval_name": name, "position": position});
        part
    };
    let task = at(json!({"type": "task"}), "task", name);
    let definition = &location["evaluator_definition"];
    let mut scorers = Vec::new();
    for (members, position, function_type) in
        [("scores", "scorer", "scorer"), ("classifiers", "classifier", "classifier")]
    {
        for (index, member) in definition[members].as_array().into_iter().flatten().enumerate() {
            let label = member["name"].as_str().map_or_else(|| format!("{position}_{index}"), str::to_owned);
            scorers.push(at(json!({"type": position, "index": index}), function_type, &label));
        }
    }
    Ok((task, scorers))
}

/// Refuses sandboxes that other services run.
fn check_provider(spec: &Value) -> Result<(), Refusal> {
    match spec["provider"].as_str() {
        Some(PROVIDER) => Ok(()),
        other => {
            let named = other.unwrap_or("nothing");
            Err(Refusal::bad(format!(
                "the provider of the sandbox is `{named}`; this server runs sandboxes of the provider `{PROVIDER}` only"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(provider: &str) -> InvokedFunction {
        let definition = json!({"scores": [{"name": "exact"}, {}], "classifiers": [{"name": "kind"}]});
        let location = json!({"type": "sandbox", "sandbox_spec": {"provider": provider}, "eval_name": "own",
            "evaluator_definition": definition});
        let function_data = json!({"type": "code", "data": {"type": "bundle", "bundle_id": "b", "location": location}});
        InvokedFunction { function_type: Some("sandbox".into()), function_data, ..InvokedFunction::default() }
    }

    #[test]
    fn a_sandbox_is_its_evaluator() {
        let (task, scorers) = evaluator_of(&sandbox("lambda"), Some("other")).expect("a sandbox").expect("a task");
        assert_eq!(task.function_type.as_deref(), Some("task"));
        let location = &task.function_data["data"]["location"];
        assert_eq!(location, &json!({"type": "experiment", "eval_name": "other", "position": {"type": "task"}}));
        let names: Vec<&str> = scorers.iter().map(|scorer| scorer.name.as_str()).collect();
        assert_eq!(names, ["exact", "scorer_1", "kind"]);
        let position = &scorers[1].function_data["data"]["location"]["position"];
        assert_eq!(position, &json!({"type": "scorer", "index": 1}));
        assert_eq!(scorers[2].function_type.as_deref(), Some("classifier"));
        let (task, _) = evaluator_of(&sandbox("lambda"), None).expect("a sandbox").expect("a task");
        assert_eq!(task.function_data["data"]["location"]["eval_name"], "own");
    }

    #[test]
    fn sandboxes_of_others_and_other_functions_are_told_apart() {
        assert!(evaluator_of(&sandbox("modal"), None).expect("a sandbox").is_err());
        assert!(evaluator_of(&InvokedFunction::default(), None).is_none());
    }
}
