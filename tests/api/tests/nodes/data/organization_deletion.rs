//! Deletion of an organization on three nodes: its keys are refused, its name is free, and no file has a byte of it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process::run;
use assay_test_api::rows::call;
use assay_test_api::search::Texts;
use serde_json::{Value, json};

const SETTING: &str = "ASSAY_STORE_ERASE_AFTER_SECONDS";
const NAME: &str = "globex-which-leaves";
const OWNER: &str = "zoe.the.owner@leaving.example";
/// Texts that only this organization has: its name and owner, and those of its rows and records.
const TEXTS: [&str; 7] = [
    NAME,
    OWNER,
    "marker-of-a-logged-row",
    "marker-of-an-experiment-row",
    "marker-of-a-dataset-row",
    "marker-of-a-prompt",
    "marker-of-a-project",
];
const ROWS: usize = 200;
const POLL: Duration = Duration::from_millis(500);
const GONE_WITHIN: Duration = Duration::from_secs(120);

fn with_key(url: &str, key: &str, method: &str, target: &str, body: &Value) -> Result<HttpResponse> {
    let request = Request {
        method: method.into(),
        target: target.into(),
        headers: vec![("authorization".into(), format!("Bearer {key}"))],
        body: (method != "GET").then(|| body.to_string().into_bytes()),
        declared_length: None,
    };
    send(url, &request)
}

fn created(url: &str, key: &str, target: &str, body: &Value) -> Result<String> {
    let answer = with_key(url, key, "POST", target, body)?;
    ensure!(answer.status == 200, "{target}: {}: {}", answer.status, answer.text());
    let answer: Value = serde_json::from_slice(&answer.body)?;
    Ok(answer["id"].as_str().unwrap_or_default().to_owned())
}

fn admin(node: &Path, words: &[&str]) -> Result<Value> {
    let place = node.to_str().context("a path that is text")?;
    run(&[&["admin"], words, &["--data-dir", place]].concat(), &[], "")?.json()
}

fn rows(marker: &str) -> Value {
    let row = |number: usize| json!({"id": format!("row {number}"), "input": format!("{marker} {number}")});
    json!({"events": (0..ROWS).map(row).collect::<Vec<_>>()})
}

/// Fills the organization through all nodes.
fn fill(urls: &[String], key: &str) -> Result<()> {
    let [first, second, third] = urls else { anyhow::bail!("three nodes") };
    let project = created(first, key, "/v1/project", &json!({"name": "marker-of-a-project"}))?;
    created(second, key, &format!("/v1/project_logs/{project}/insert"), &rows("marker-of-a-logged-row"))?;
    for (kind, marker) in [("experiment", "marker-of-an-experiment-row"), ("dataset", "marker-of-a-dataset-row")] {
        let id = created(third, key, &format!("/v1/{kind}"), &json!({"project_id": project, "name": "one"}))?;
        created(first, key, &format!("/v1/{kind}/{id}/insert"), &rows(marker))?;
    }
    let prompt = json!({"prompt": {"type": "chat", "messages": [{"role": "user", "content": "marker-of-a-prompt"}]}});
    let prompt = json!({"project_id": project, "name": "p", "slug": "p", "prompt_data": prompt});
    created(second, key, "/v1/prompt", &prompt)?;
    Ok(())
}

fn is_in_no_file(data: &Path, log: impl Fn() -> String) -> Result<()> {
    let texts = Texts::new(TEXTS);
    for node in 1..=NODES {
        let begun = Instant::now();
        loop {
            let left = texts.below(&data.join(format!("node-{node}")));
            if left.is_empty() {
                break;
            }
            ensure!(begun.elapsed() < GONE_WITHIN, "after {GONE_WITHIN:?}: {left:#?}\n{}", log());
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

fn leaves_nothing(dev: &Dev, data: &Path) -> Result<()> {
    let node = data.join("node-1");
    let made = admin(&node, &["create-organization", NAME, "--owner", OWNER])?;
    let key = made["api_key"].as_str().context("a key")?;
    fill(&dev.urls, key)?;
    let kept = call(&dev.urls[0], "POST", "/v1/project", &json!({"name": "kept"}))?;
    let kept = format!("/v1/project_logs/{}", kept["id"].as_str().context("an id")?);
    call(&dev.urls[0], "POST", &format!("{kept}/insert"), &rows("kept"))?;
    let node = data.join("node-2");
    let mistyped = admin(&node, &["delete-organization", NAME, "--confirm", "globex"]);
    ensure!(mistyped.is_err_and(|why| why.to_string().contains("nothing was deleted")), "it was not confirmed");
    ensure!(with_key(&dev.urls[2], key, "POST", "/api/self/me", &Value::Null)?.status == 200, "it is there");
    admin(&node, &["delete-organization", NAME, "--confirm", NAME])?;
    for url in &dev.urls {
        let refused = with_key(url, key, "POST", "/api/self/me", &Value::Null)?;
        ensure!(refused.status == 401, "{url}: {}: {}", refused.status, refused.text());
    }
    is_in_no_file(data, || dev.log())?;
    let page = call(&dev.urls[1], "POST", &format!("{kept}/fetch"), &json!({"limit": 1000}))?;
    ensure!(page["events"].as_array().map(Vec::len) == Some(ROWS), "another organization lost rows");
    let made = admin(&node, &["create-organization", NAME, "--owner", OWNER])?;
    let again = with_key(&dev.urls[0], made["api_key"].as_str().context("a key")?, "GET", "/v1/project", &Value::Null)?;
    let again: Value = serde_json::from_slice(&again.body)?;
    ensure!(again["objects"] == json!([]), "an organization of the same name has {again}");
    let only = admin(&node, &["delete-organization", "default", "--confirm", "default"]);
    ensure!(only.is_ok(), "one of two may go: {only:?}");
    let last = admin(&node, &["delete-organization", NAME, "--confirm", NAME]);
    ensure!(last.is_err_and(|why| why.to_string().contains("the only organization")), "the last one may not go");
    Ok(())
}

#[test]
fn a_deleted_organization_leaves_no_access_and_no_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, &[(SETTING, "1")]).unwrap_or_else(|error| panic!("{error:#}"));
    leaves_nothing(&dev, &data).unwrap_or_else(|error| panic!("{error:#}\n{}", dev.log()));
}
