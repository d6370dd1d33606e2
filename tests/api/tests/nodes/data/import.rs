//! `assay import` from a server that speaks Langfuse's public API: killed several times, and equal at the end.

mod langfuse_server;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::process::{Ran, command, program, run};
use assay_test_api::rows::call;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

use langfuse_server::{LangfuseServer, PUBLIC_KEY, SECRET_KEY};

/// Requests to the source after which a process is killed.
const KILLS: [usize; 10] = [1, 2, 3, 2, 4, 1, 5, 3, 6, 8];
const WAIT_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

struct Import<'t> {
    source: &'t LangfuseServer,
    target: &'t Server,
    state: &'t Path,
    project: &'t str,
}

impl Import<'_> {
    fn arguments(&self) -> Result<Vec<&str>> {
        let state = self.state.to_str().context("a path that is text")?;
        let (from, to) = (self.source.url.as_str(), self.target.url.as_str());
        let words = ["import", "langfuse", "--url", from, "--public-key", PUBLIC_KEY, "--to", to];
        Ok([&words[..], &["--project", self.project, "--state", state][..]].concat())
    }

    fn run(&self) -> Result<Ran> {
        run(&self.arguments()?, &[("ASSAY_API_KEY", TEST_KEY), ("LANGFUSE_SECRET_KEY", SECRET_KEY)], "")
    }

    fn start(&self) -> Result<Child> {
        let mut command = command(&program()?);
        command.args(self.arguments()?).env("ASSAY_API_KEY", TEST_KEY).env("LANGFUSE_SECRET_KEY", SECRET_KEY);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("the program does not start")
    }

    /// Starts it, and kills it once the source has had so many more requests.
    fn kill_after(&self, requests: usize) -> Result<()> {
        let until = self.source.requests() + requests;
        let mut child = self.start()?;
        let deadline = Instant::now() + WAIT_MAX;
        while self.source.requests() < until {
            ensure!(child.try_wait()?.is_none(), "it ended before it was killed");
            ensure!(Instant::now() < deadline, "it sends no requests");
            std::thread::sleep(POLL);
        }
        child.kill()?;
        child.wait()?;
        // Its successor knows nothing of a pause that it was asked for.
        self.source.forget_pause();
        Ok(())
    }

    /// Returns the rows of a query on an object of the target.
    fn query(&self, text: &str) -> Result<Vec<Value>> {
        let answer = call(&self.target.url, "POST", "/btql", &json!({"query": text, "fmt": "json"}))?;
        Ok(answer["data"].as_array().context("data")?.clone())
    }
}

#[test]
fn an_import_that_is_killed_ten_times_is_equal_at_the_end() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let target = Server::start(&Options::new(&dir.path().join("node")))?;
    let source = LangfuseServer::start();
    let state = dir.path().join("state");
    let import = Import { source: &source, target: &target, state: &state, project: "moved" };
    for requests in KILLS {
        import.kill_after(requests)?;
    }
    let done = import.run()?;
    ensure!(done.success, "{}{}", done.out, done.errors);
    let summary = done.json()?;
    let expected = source.counts();
    for (name, count) in expected.as_object().context("counts")? {
        assert_eq!(summary["counts"][name], *count, "{name}: {summary:#}");
    }
    assert_eq!(summary["is_equal"], true, "{summary:#}");
    assert_eq!(source.early_requests(), 0, "a request came before the pause that the source asked for was over");
    assert_eq!(source.writes(), 0, "the source is only read");
    check_rows(&import, &expected)?;
    let report = std::fs::read_to_string(state.join("report.md"))?;
    assert!(report.contains("are equal") && report.contains("1 x scores of sessions"), "{report}");
    // Once more, from the start: no row is added.
    let again = Import { state: &dir.path().join("again"), ..import };
    let done = again.run()?;
    ensure!(done.success, "{}{}", done.out, done.errors);
    assert_eq!(prompt_versions(&again)?, 3);
    check_rows(&again, &expected)
}

/// Returns the number of writes of the prompt.
fn prompt_versions(import: &Import<'_>) -> Result<usize> {
    let project = call(&import.target.url, "POST", "/v1/project", &json!({"name": import.project}))?;
    let project = project["id"].as_str().context("id")?;
    let prompts = call(&import.target.url, "GET", &format!("/v1/prompt?project_id={project}"), &Value::Null)?;
    let prompt = prompts["objects"][0]["id"].as_str().context("a prompt")?;
    let query = format!("SELECT * FROM project_prompts('{project}') WHERE id = '{prompt}'");
    let body = json!({"query": query, "audit_log": true, "fmt": "json"});
    Ok(call(&import.target.url, "POST", "/btql", &body)?["data"].as_array().context("data")?.len())
}

/// Compares the target with the source by queries of this test.
fn check_rows(import: &Import<'_>, expected: &Value) -> Result<()> {
    let project = call(&import.target.url, "POST", "/v1/project", &json!({"name": import.project}))?;
    let id = project["id"].as_str().context("id")?;
    let sums = import.query(&format!(
        "measures: count(1) as spans, count_distinct(root_span_id) as traces, sum(metrics.prompt_tokens) as tokens \
         | from: project_logs('{id}')"
    ))?;
    assert_eq!(sums[0]["spans"], expected["spans"]);
    let one = import.query(&format!(
        "SELECT root_span_id, span_id, span_parents, scores, metadata, output FROM project_logs('{id}') \
         WHERE root_span_id = 'trace-7'"
    ))?;
    assert_eq!(one.len(), 5, "{one:?}");
    let root = one.iter().find(|row| row["span_parents"].is_null()).context("a root")?;
    assert_eq!(root["metadata"]["user_id"], "user-7");
    assert_eq!(root["metadata"]["session_id"], "session-2");
    assert_eq!(root["scores"]["helpful"].as_f64(), Some(1.0));
    assert_eq!(root["metadata"]["imported_scores"]["score-rating-7"]["value"], 4);
    let child = one.iter().find(|row| row["span_id"] == "observation-7-2").context("a child")?;
    assert_eq!(child["span_parents"], json!(["observation-7-0"]));
    let datasets = call(&import.target.url, "GET", &format!("/v1/dataset?project_id={id}"), &Value::Null)?;
    let dataset = datasets["objects"][0]["id"].as_str().context("a dataset")?;
    assert_eq!(import.query(&format!("SELECT id FROM dataset('{dataset}')"))?.len(), 20);
    let experiments = call(&import.target.url, "GET", &format!("/v1/experiment?project_id={id}"), &Value::Null)?;
    assert_eq!(experiments["objects"].as_array().map(Vec::len), Some(1));
    let experiment = experiments["objects"][0]["id"].as_str().context("an experiment")?;
    let rows = import.query(&format!(
        "SELECT input, expected, output, origin FROM experiment('{experiment}') WHERE is_root ORDER BY created"
    ))?;
    assert_eq!(rows.len(), 10);
    assert!(
        rows.iter().all(|row| row["origin"]["object_id"] == dataset && row["expected"]["answer"].is_i64()),
        "{rows:?}"
    );
    let prompts = call(&import.target.url, "GET", &format!("/v1/prompt?project_id={id}&slug=greeting"), &Value::Null)?;
    let prompt = &prompts["objects"][0];
    assert_eq!(prompt["metadata"]["imported"]["version"], "3");
    assert_eq!(prompt["prompt_data"]["prompt"]["content"], "Hello {{name}}, 3");
    let pinned = call(
        &import.target.url,
        "GET",
        &format!("/v1/prompt?project_id={id}&slug=greeting&environment=production"),
        &Value::Null,
    )?;
    assert_eq!(pinned["objects"][0]["metadata"]["imported"]["version"], "2");
    Ok(())
}

#[test]
fn a_wrong_command_says_what_is_missing() -> Result<()> {
    let refused = |words: &[&str], key: Option<&str>| {
        let environment: Vec<(&str, &str)> = key.into_iter().map(|key| ("ASSAY_API_KEY", key)).collect();
        let ran = run(&[&["import"], words].concat(), &environment, "")?;
        ensure!(!ran.success, "it succeeded");
        anyhow::Ok(ran.errors)
    };
    let to = ["--to", "http://127.0.0.1:1", "--project", "p"];
    let langfuse = ["langfuse", "--url", "http://127.0.0.1:1", "--public-key", "pk"];
    assert!(refused(&langfuse, Some(TEST_KEY))?.contains("--to"));
    assert!(refused(&[&langfuse[..], &to[..]].concat(), None)?.contains("set ASSAY_API_KEY"));
    assert!(refused(&[&langfuse[..], &to[..]].concat(), Some(TEST_KEY))?.contains("set LANGFUSE_SECRET_KEY"));
    let far = ["mlflow", "--url", "http://mlflow.example", "--to", "http://far.example", "--project", "p"];
    assert!(refused(&far, Some(TEST_KEY))?.contains("plain text"));
    let sqlite = [&["phoenix", "--sqlite", "phoenix.db"][..], &to[..]].concat();
    assert!(refused(&sqlite, Some(TEST_KEY))?.contains("phoenix serve"));
    Ok(())
}

#[test]
fn a_table_becomes_a_dataset() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let target = Server::start(&Options::new(&dir.path().join("node")))?;
    let file = dir.path().join("questions.csv");
    std::fs::write(&file, "question,answer,team\nwhy,\"so, then\",a\nhow,,b\n")?;
    let state = dir.path().join("state");
    let (file, state) = (file.to_str().context("text")?, state.to_str().context("text")?);
    let words = ["import", "table", file, "--map", "input=question", "--map", "expected=answer"];
    let more = ["--into", "dataset:questions", "--to", target.url.as_str(), "--project", "p", "--state", state];
    let done = run(&[&words[..], &more[..]].concat(), &[("ASSAY_API_KEY", TEST_KEY)], "")?.json()?;
    assert_eq!((&done["counts"]["dataset_rows"], &done["is_equal"]), (&json!(2), &json!(true)));
    let project = call(&target.url, "POST", "/v1/project", &json!({"name": "p"}))?["id"].clone();
    let list = format!("/v1/dataset?project_id={}", project.as_str().context("id")?);
    let dataset = call(&target.url, "GET", &list, &Value::Null)?["objects"][0]["id"].clone();
    let query =
        format!("SELECT input, expected, metadata FROM dataset('{}') ORDER BY input", dataset.as_str().context("id")?);
    let rows = call(&target.url, "POST", "/btql", &json!({"query": query}))?["data"].clone();
    assert_eq!(rows[1], json!({"input": "why", "expected": "so, then", "metadata": {"team": "a"}}));
    Ok(())
}
