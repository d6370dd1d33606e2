//! 200 prompts: each SDK builds what the server sends to the model, but for the differences that `templates.json` lists
//! with their reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use assay_test_clients::kept::ends_well;
use assay_test_clients::suite::covered;
use assay_test_clients::{javascript, python};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::FunctionNode;

const TEMPLATES: &str = include_str!("../../templates.json");
const CASES: usize = 200;
const PROJECT: &str = "templates";
/// Differences that are printed.
const PRINTED_MAX: usize = 20;

/// The content of `templates.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateFile {
    /// Why an SDK builds something else, by the names that cases give.
    reasons: BTreeMap<String, String>,
    variables: Map<String, Value>,
    cases: Vec<TemplateCase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateCase {
    /// Content of the only message, in place of a whole prompt.
    template: Option<String>,
    format: Option<String>,
    prompt: Option<Value>,
    #[serde(default)]
    params: Map<String, Value>,
    /// Names of the reasons for which an SDK builds something else.
    python: Option<String>,
    javascript: Option<String>,
    /// Messages that the server sends where no SDK tells them; none where it refuses the template.
    sent: Option<Vec<Value>>,
}

impl TemplateCase {
    fn prompt_data(&self) -> Value {
        let of_template = || json!({"type": "chat", "messages": [{"role": "user", "content": self.template}]});
        json!({
            "prompt": self.prompt.clone().unwrap_or_else(of_template),
            "options": {"model": "scripted", "params": self.params},
            "template_format": self.format,
        })
    }
}

fn slug(index: usize) -> String {
    format!("case-{index:03}")
}

/// Stores the prompts, each with a slug of its own.
fn store(served: &FunctionNode, cases: &[TemplateCase]) {
    let project = served.node.api("POST", "/v1/project", &json!({"name": PROJECT}));
    let function = |(index, case): (usize, &TemplateCase)| {
        json!({"project_id": project["id"], "name": slug(index), "slug": slug(index), "if_exists": "error",
            "function_data": {"type": "prompt"}, "prompt_data": case.prompt_data()})
    };
    let functions: Vec<_> = cases.iter().enumerate().map(function).collect();
    served.node.api("POST", "/insert-functions", &json!({ "functions": functions }));
}

/// Invokes each prompt. Returns the requests that the provider got; null where the server refused a template.
fn sent(served: &FunctionNode, file: &TemplateFile) -> Vec<Value> {
    let mut sent = Vec::with_capacity(file.cases.len());
    for index in 0..file.cases.len() {
        let before = served.provider.requests().len();
        let body = json!({"project_name": PROJECT, "slug": slug(index), "input": file.variables});
        let answer = served.node.send("POST", "/function/invoke", &body);
        let requests = served.provider.requests();
        match (answer.status, &requests[before..]) {
            (200, [request]) => sent.push(without_nulls(&request.json())),
            (400, []) => sent.push(Value::Null),
            (status, requests) => panic!("{}: {status}, {requests:?}: {}", slug(index), answer.text()),
        }
    }
    sent
}

/// Checks what the server sends in the cases that the JavaScript SDK, which the server follows, builds otherwise.
fn check_listed(sent: &[Value], cases: &[TemplateCase]) {
    for (index, (sent, case)) in sent.iter().zip(cases).enumerate() {
        assert_eq!(case.sent.is_some(), case.javascript.is_some(), "{}", slug(index));
        if let Some(messages) = &case.sent {
            let found = sent["messages"].as_array().cloned().unwrap_or_default();
            assert_eq!(&found, messages, "{}", slug(index));
        }
    }
}

/// Runs a script that builds each prompt. Returns what it built; null where it refused to.
fn built(command: &mut Command, script: &str, folder: &Path, file: &TemplateFile) -> Result<Vec<Value>> {
    let (given, written) = (folder.join("cases.json"), folder.join("built.json"));
    let one = |index| json!({"slug": slug(index), "variables": file.variables});
    std::fs::write(&given, (0..file.cases.len()).map(one).collect::<Value>().to_string())?;
    ends_well(script, command.arg(PROJECT).arg(&given).arg(&written))?;
    let built: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&written)?)?;
    let or_refused = |value: Value| if value["failed"].is_string() { Value::Null } else { without_nulls(&value) };
    Ok(built.into_iter().map(or_refused).collect())
}

/// Returns a value without members that are null, which some clients write and others leave out.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// Panics unless exactly those differ that say why.
fn compare(name: &str, sent: &[Value], built: &[Value], why: impl Fn(usize) -> Option<String>) {
    assert_eq!(sent.len(), built.len());
    let mut wrong = Vec::new();
    for (index, (sent, built)) in sent.iter().zip(built).enumerate() {
        match (sent == built, why(index)) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(why)) => wrong.push(format!("{}: the same, in spite of `{why}`: {sent}", slug(index))),
            (false, None) => wrong.push(format!("{}: built {built}\n  sent {sent}", slug(index))),
        }
    }
    let printed = wrong[..wrong.len().min(PRINTED_MAX)].join("\n");
    assert!(wrong.is_empty(), "{name}: {} of {}:\n{printed}", wrong.len(), sent.len());
}

fn by_python(python: &Path, served: &FunctionNode, file: &TemplateFile) -> Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let (url, key) = served.node.caller();
    let mut command = python::command(python, folder.path(), url, key);
    command.arg(python::folder().join("templates.py"));
    built(&mut command, "templates.py", folder.path(), file).context("the Python SDK")
}

fn by_javascript(
    javascript: &javascript::Environment,
    served: &FunctionNode,
    file: &TemplateFile,
) -> Result<Vec<Value>> {
    let (folder, home) = (tempfile::tempdir()?, javascript.home()?);
    let (url, key) = served.node.caller();
    let mut command = home.command("templates.mjs");
    command.env("BRAINTRUST_APP_URL", url).env("BRAINTRUST_API_KEY", key);
    built(&mut command, "templates.mjs", folder.path(), file).context("the JavaScript SDK")
}

#[test]
fn sdks_build_what_the_server_sends() {
    let python = covered("prompts of the Python SDK", python::environment());
    let javascript = covered("prompts of the JavaScript SDK", javascript::environment());
    let file: TemplateFile = serde_json::from_str(TEMPLATES).expect("the cases");
    assert_eq!(file.cases.len(), CASES);
    let templates: BTreeSet<String> = file.cases.iter().map(|case| case.prompt_data().to_string()).collect();
    assert_eq!(templates.len(), CASES, "a case is there twice");
    let given = file.cases.iter().flat_map(|case| [&case.python, &case.javascript]).flatten();
    assert_eq!(given.collect::<BTreeSet<_>>(), file.reasons.keys().collect::<BTreeSet<_>>());

    let served = FunctionNode::start();
    store(&served, &file.cases);
    let sent = sent(&served, &file);
    check_listed(&sent, &file.cases);
    let reason = |name: &Option<String>| name.as_ref().map(|name| file.reasons[name].clone());
    if let Some(python) = python {
        let built = by_python(python, &served, &file).unwrap_or_else(|error| panic!("{error:#}"));
        compare("Python", &sent, &built, |index| reason(&file.cases[index].python));
    }
    if let Some(javascript) = javascript {
        let built = by_javascript(javascript, &served, &file).unwrap_or_else(|error| panic!("{error:#}"));
        compare("JavaScript", &sent, &built, |index| reason(&file.cases[index].javascript));
    }
}
