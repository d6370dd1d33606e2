//! The command line client invokes functions, and shows the thread of a trace.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use assay_test_clients::javascript;
use assay_test_clients::kept::said;
use assay_test_clients::suite::{covered, until};
use serde_json::{Value, json};

use crate::FunctionNode;

const PACKAGE: &str = include_str!("../../javascript/cli/package.json");
const LOCK: &str = include_str!("../../javascript/cli/package-lock.json");
/// The program in its package.
const PROGRAM: &str = "@braintrust/bt-linux-x64/bin/bt";
const PROJECT: &str = "cli-functions";
/// Spans of one call of a prompt: the function and its model.
const SPANS_PER_CALL: usize = 2;

/// The program with the addresses and the credential of a node.
struct CommandLine<'a> {
    packages: &'a Path,
    home: tempfile::TempDir,
    served: &'a FunctionNode,
}

impl CommandLine<'_> {
    fn run(&self, words: &[&str]) -> Output {
        let (url, key) = self.served.node.caller();
        let mut command = Command::new(self.packages.join(PROGRAM));
        command.current_dir(self.home.path()).env_clear().env("HOME", self.home.path()).stdin(Stdio::null());
        command.envs([("BRAINTRUST_APP_URL", url), ("BRAINTRUST_API_URL", url), ("BRAINTRUST_API_KEY", key)]);
        command.env("BRAINTRUST_DEFAULT_PROJECT", PROJECT).args(words).args(["--no-input", "--no-color"]);
        command.output().unwrap_or_else(|error| panic!("{PROGRAM} does not run: {error}"))
    }

    fn text(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}\n{}", said(&output), self.served.node.log());
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn json(&self, words: &[&str]) -> Value {
        let text = self.text(&[words, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
    }
}

/// Stores a prompt in two versions and a judge. Returns the id of the project and the first version of the prompt.
fn store(served: &FunctionNode) -> (String, String) {
    let project = served.node.api("POST", "/v1/project", &json!({"name": PROJECT}))["id"].clone();
    let prompt = |text: &str| {
        let messages = json!([{"role": "system", "content": text}, {"role": "user", "content": "{{question}}"}]);
        json!({"prompt": {"type": "chat", "messages": messages}, "options": {"model": "scripted"}})
    };
    let function = |slug: &str, function_type: &str, prompt_data: Value| {
        json!({"project_id": project, "name": slug, "slug": slug, "function_type": function_type,
            "function_data": {"type": "prompt"}, "prompt_data": prompt_data})
    };
    let first = served.node.api("POST", "/v1/function", &function("plain", "llm", prompt("one")));
    let (id, version) = (first["id"].as_str().expect("an id"), first["_xact_id"].as_str().expect("a version"));
    served.node.api("PATCH", &format!("/v1/function/{id}"), &json!({"prompt_data": prompt("two")}));
    let judge = json!({"prompt": {"type": "chat", "messages": [{"role": "user", "content": "{{output}}"}]},
        "options": {"model": "scripted"},
        "parser": {"type": "llm_classifier", "use_cot": false, "choice_scores": {"good": 1, "bad": 0}}});
    served.node.api("POST", "/v1/function", &function("judge", "scorer", judge));
    (project.as_str().expect("an id").to_owned(), version.to_owned())
}

#[test]
fn the_command_line_invokes_functions_and_shows_threads() {
    let cli = covered(
        "the command line client",
        javascript::made("cli", PACKAGE, LOCK).map_err(|error| format!("{error:#}")),
    );
    let Some(cli) = cli else { return };
    let served = FunctionNode::start();
    let (project, version) = store(&served);
    let home = tempfile::tempdir().expect("a directory");
    let line = CommandLine { packages: cli.packages(), home, served: &served };
    let input = r#"{"question":"hi"}"#;
    let invoke = ["functions", "invoke", "plain", "--input", input];
    assert_eq!(line.text(&invoke), "echo: hi (told: two)");
    assert_eq!(line.json(&invoke), "echo: hi (told: two)");
    assert_eq!(line.text(&[&invoke[..], &["--version", &version]].concat()), "echo: hi (told: one)");
    assert_eq!(line.text(&[&invoke[..], &["--message", "and you"]].concat()), "echo: and you (told: two)");
    let judge = ["scorers", "invoke", "judge", "--input", r#"{"output":"[choose bad]"}"#];
    assert_eq!(line.json(&judge), json!({"name": "judge", "score": 0, "metadata": {"choice": "bad"}}));
    let refused = line.run(&["functions", "invoke", "none", "--input", input]);
    assert!(!refused.status.success() && said(&refused).contains("404"), "{}", said(&refused));
    shows_threads(&line, &project);
}

/// Logs a trace with two calls of a model, and reads its thread.
fn shows_threads(line: &CommandLine<'_>, project: &str) {
    let ids = json!({"id": "r", "span_id": "s", "root_span_id": "s"});
    let parent = json!({"object_type": "project_logs", "object_id": project, "row_ids": ids});
    let root = json!({"id": "r", "span_id": "s", "root_span_id": "s", "span_attributes": {"name": "request"}});
    let rows = format!("/v1/project_logs/{project}");
    line.served.node.api("POST", &format!("{rows}/insert"), &json!({"events": [root]}));
    let ended = || {
        let page = line.served.node.api("POST", &format!("{rows}/fetch"), &json!({"limit": 100}));
        let events = page["events"].as_array().expect("rows");
        events.iter().filter(|row| row["metrics"]["end"].is_number()).count()
    };
    let questions = ["hi", "bye"];
    for question in questions {
        let body = json!({"project_name": PROJECT, "slug": "plain", "input": {"question": question}, "parent": parent});
        line.served.node.api("POST", "/function/invoke", &body);
    }
    // The server writes spans after its answer, in any order.
    until("the spans of functions and their models", || ended() == questions.len() * SPANS_PER_CALL);
    let view = ["view", "thread", "--trace-id", "s"];
    let thread = line.json(&view);
    let messages = thread["messages"].as_array().unwrap_or_else(|| panic!("no messages: {thread}"));
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    // the system message of both calls is there once
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant"], "{thread}");
    let text = line.text(&view);
    let said = ["two", "hi", "echo: hi (told: two)", "bye", "echo: bye (told: two)"];
    let shown: Vec<_> = text.lines().filter(|line| said.contains(line)).collect();
    assert_eq!(shown, said, "{text}");
}
