//! Evaluations by `braintrust eval`, whose task and scorers were pushed, and the push of an evaluation's own functions.

use anyhow::{Context, Result, ensure};
use assay_test_api::rows::call;
use assay_test_clients::pushing::{PushProgram, PushPrograms, PushTarget};
use serde_json::{Value, json};

use crate::JAVASCRIPT;

/// Means of the scores of two cases, by a part of the score's name. The span of a pushed scorer that returns a number
/// has a score under the function's name, beside the one that the SDK gives.
const MEANS: [(&str, f64); 4] = [("Same length", 0.5), ("-same-length-latest", 0.5), ("Words", 0.2), ("starts", 1.0)];
/// Cases of the evaluation.
const CASES: usize = 2;

/// Runs the evaluation of a language, and checks what it left.
pub fn evaluate(programs: &PushPrograms, language: &str, target: PushTarget<'_>) -> Result<()> {
    let folder = programs.sources(language, target.project)?;
    if language == JAVASCRIPT {
        let arguments = ["eval", "--push", "--no-progress-bars", "--jsonl", "pushed.eval.ts"];
        folder.run(PushProgram::JavaScriptSdk, &arguments, target)?;
        runs_what_was_pushed(target)?;
    } else {
        folder.run(PushProgram::PythonSdk, &["eval", "--no-progress-bars", "--jsonl", "eval_pushed.py"], target)?;
    }
    let named = format!("/v1/experiment?project_name={}&experiment_name=pushed", target.project);
    let found = call(target.url, "GET", &named, &Value::Null)?;
    let id = found["objects"][0]["id"].as_str().with_context(|| format!("no experiment: {found}"))?;
    let summary =
        call(target.url, "GET", &format!("/v1/experiment/{id}/summarize?summarize_scores=true"), &Value::Null)?;
    let scores = summary["scores"].as_object().with_context(|| format!("no scores: {summary}"))?;
    ensure!(scores.len() == MEANS.len(), "{summary}");
    for (part, mean) in MEANS {
        let found = scores.iter().find(|(name, _)| name.contains(part)).and_then(|(_, score)| score["score"].as_f64());
        ensure!(found.is_some_and(|found| (found - mean).abs() < 1e-9), "{part} is not {mean}: {summary}");
    }
    has_function_spans(id, target)
}

/// Checks that the task and each scorer of a case has the span of the pushed function below its own.
fn has_function_spans(experiment: &str, target: PushTarget<'_>) -> Result<()> {
    let rows = call(target.url, "POST", &format!("/v1/experiment/{experiment}/fetch"), &json!({"limit": 1000}))?;
    let rows = rows["events"].as_array().context("rows")?;
    let type_of = |id: &Value| {
        rows.iter().find(|row| row["span_id"] == *id).map_or(&Value::Null, |row| &row["span_attributes"]["type"])
    };
    for (name, above) in [("Ask", "task"), ("Same length", "score"), ("Words", "score")] {
        let spans = rows.iter().filter(|row| row["span_attributes"]["name"] == name);
        let below = spans.filter(|row| type_of(&row["span_parents"][0]) == above).count();
        ensure!(below == CASES, "{below} spans `{name}` below spans of the type `{above}`: {rows:?}");
    }
    Ok(())
}

/// Checks the task and a scorer that `braintrust eval --push` made functions of.
fn runs_what_was_pushed(target: PushTarget<'_>) -> Result<()> {
    for (slug, input, value) in [
        ("eval-pushed-task", json!({"question": "hi"}), json!("echo: hi (told: be brief)")),
        ("eval-pushed-scorer-starts", json!({"output": "ab", "expected": "ac"}), json!(1)),
    ] {
        let body = json!({"project_name": target.project, "slug": slug, "input": input});
        let found = call(target.url, "POST", "/function/invoke", &body)?;
        ensure!(found == value, "{slug}: wanted {value}, found {found}");
    }
    Ok(())
}
