//! Objects that coding agents read over MCP, and a call of each tool about them.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::process::run;
use crate::rows::call;

/// Spans of the long trace, and the size of their values.
pub const LONG_SPANS: usize = 60;
const LONG_BYTES: usize = 20_000;
/// Text in all data that a caller without rights must not see.
pub const HIDDEN: &str = "xq9hidden";
/// Texts that no answer to a caller without rights has.
pub const HIDDEN_TEXTS: [&str; 3] = [HIDDEN, "\"before\"", "created"];
const WITHOUT_RIGHTS: &str = "agent@example.com";

/// Returns a new key of a member without grants.
pub fn key_without_rights(url: &str, node_dir: &Path) -> Result<String> {
    let invited = json!({"invite_users": {"emails": [WITHOUT_RIGHTS], "send_invite_emails": false}});
    call(url, "PATCH", "/v1/organization/members", &invited)?;
    let place = node_dir.to_str().context("a path that is text")?;
    let words = ["admin", "create-key", "agent", "--organization", "default", "--user", WITHOUT_RIGHTS];
    let made = run(&[words.as_slice(), &["--data-dir", place]].concat(), &[], "")?.json()?;
    made["api_key"].as_str().map(str::to_owned).context("a key")
}

/// Objects that the tools are about.
#[derive(Clone, Debug)]
pub struct AgentData {
    pub project: String,
    pub dataset: String,
    before: String,
    after: String,
    prompt: String,
}

impl AgentData {
    pub fn create(url: &str) -> Result<AgentData> {
        let send = |path: &str, body: Value| call(url, "POST", path, &body);
        let make = |path: &str, body: Value| send(path, body)?["id"].as_str().map(str::to_owned).context("an id");
        let project = make("/v1/project", json!({"name": "agents"}))?;
        let dataset = make("/v1/dataset", json!({"project_id": project, "name": "questions"}))?;
        let before = make("/v1/experiment", json!({"project_id": project, "name": "before"}))?;
        let after = make("/v1/experiment", json!({"project_id": project, "name": "after", "base_exp_id": before}))?;
        let messages = json!([{"role": "user", "content": format!("Say {HIDDEN}")}]);
        let prompt = make(
            "/v1/prompt",
            json!({"project_id": project, "name": "Greeting", "slug": "greeting",
            "prompt_data": {"prompt": {"type": "chat", "messages": messages}, "options": {"model": "m"}}}),
        )?;
        send(&format!("/v1/dataset/{dataset}/insert"), json!({"events": [{"id": "d", "input": HIDDEN}]}))?;
        for (experiment, score) in [(&before, 1.0), (&after, 0.25)] {
            let event = json!({"id": "e", "input": "q", "output": HIDDEN, "scores": {"good": score}});
            send(&format!("/v1/experiment/{experiment}/insert"), json!({"events": [event]}))?;
        }
        let mut spans = vec![json!({
            "id": "t0", "span_id": "t0", "root_span_id": "t0", "input": [{"role": "user", "content": HIDDEN}],
            "output": "Paid.", "span_attributes": {"name": "chat", "type": "llm"}, "metrics": {"start": 0, "end": 2},
        })];
        spans.extend((1..LONG_SPANS).map(|number| {
            json!({
                "id": format!("t{number}"), "span_id": format!("t{number}"), "root_span_id": "t0",
                "span_parents": ["t0"], "span_attributes": {"name": format!("step {number}"), "type": "tool"},
                "input": format!("{number} {}", "\"quoted\" ".repeat(LONG_BYTES / 9)),
                "metrics": {"start": number, "end": number + 1},
            })
        }));
        send(&format!("/v1/project_logs/{project}/insert"), json!({ "events": spans }))?;
        Ok(AgentData { project, dataset, before, after, prompt })
    }

    /// Returns right arguments of each tool, with a text of the answer.
    pub fn calls(&self) -> Vec<(&'static str, Value, &'static str)> {
        let AgentData { project, dataset, before, after, prompt } = self;
        vec![
            ("sql_query", json!({"query": format!("SELECT input FROM dataset('{dataset}')")}), HIDDEN),
            ("btql_query", json!({"query": format!("select: input | from: dataset('{dataset}')")}), HIDDEN),
            ("infer_schema", json!({"object_type": "dataset", "object": dataset}), "\"input\""),
            ("list_recent_objects", json!({"object_type": "experiment", "project": project}), "before"),
            (
                "resolve_object",
                json!({"object_type": "dataset", "object": "questions", "project": "agents"}),
                "created",
            ),
            ("get_trace", json!({"object_type": "project_logs", "object": project, "trace_id": "t0"}), HIDDEN),
            ("summarize_experiment", json!({"experiment": after, "base": before}), "good"),
            ("compare_experiments", json!({"experiment": after, "base": before}), HIDDEN),
            ("get_prompt", json!({"prompt": prompt}), HIDDEN),
            ("list_automations", json!({"project": project}), "online_scoring_rules"),
            ("generate_permalink", json!({"object_type": "experiment", "object": after}), "/app/default/p/agents/"),
            ("search_docs", json!({"query": "query language"}), "query-language"),
        ]
    }
}
