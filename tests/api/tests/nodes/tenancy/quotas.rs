//! A quota of rows holds on every node: beyond it writes are refused with a reason, deletes and other organizations are
//! admitted, and deletes free quota.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process::run;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

const RULES: &str = "[{organizations = [\"default\"], rows = 100, bytes = 1000000}]";
/// More than the quota of bytes.
const FILE_BYTES: usize = 2_000_000;
const OTHER: &str = "globex";
/// Nodes look every two seconds.
const SEEN_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(250);

fn post(url: &str, key: &str, target: &str, body: &Value) -> Result<HttpResponse> {
    let headers = vec![("authorization".into(), format!("Bearer {key}"))];
    let body = Some(body.to_string().into_bytes());
    send(url, &Request { method: "POST".into(), target: target.into(), headers, body, ..Request::default() })
}

fn project(url: &str, key: &str) -> Result<String> {
    let answer = post(url, key, "/v1/project", &json!({"name": "p"}))?;
    let made: Value = serde_json::from_slice(&answer.body)?;
    made["id"].as_str().map(str::to_owned).with_context(|| answer.text())
}

fn rows(from: usize, count: usize) -> Value {
    let rows: Vec<_> = (from..from + count).map(|row| json!({"id": format!("r{row}"), "input": row})).collect();
    json!({ "events": rows })
}

fn becomes(what: &str, status: u16, asked: impl Fn() -> Result<HttpResponse>) -> Result<HttpResponse> {
    let begun = Instant::now();
    loop {
        let answer = asked()?;
        if answer.status == status {
            return Ok(answer);
        }
        ensure!(begun.elapsed() < SEEN_WITHIN, "{what}: {} {}", answer.status, answer.text());
        std::thread::sleep(POLL);
    }
}

/// Checks that the bytes of a file count before they are stored.
fn has_no_room_for_a_file(url: &str) -> Result<()> {
    let slot = json!({"key": "5b6f2c1e-8f4e-4a57-9f2b-2f8a5f1c0009", "filename": "f", "content_type": "text/plain"});
    let slot: Value = serde_json::from_slice(&post(url, TEST_KEY, "/attachment", &slot)?.body)?;
    let address = slot["signedUrl"].as_str().context("an address")?;
    let place = address.find("/attachment/bytes").context("an address of a file")?;
    let put = |bytes: usize| {
        let body = Some(vec![b'x'; bytes]);
        let request = Request { method: "PUT".into(), target: address[place..].into(), body, ..Request::default() };
        send(url, &request)
    };
    let large = put(FILE_BYTES)?;
    ensure!(large.status == 429 && large.text().contains("limits.quotas"), "{}: {}", large.status, large.text());
    let small = put(100)?;
    ensure!(small.status == 200, "a small file has room: {}", small.text());
    Ok(())
}

fn holds(urls: &[String], data_dir: &Path) -> Result<()> {
    let own = project(&urls[0], TEST_KEY)?;
    let insert = format!("/v1/project_logs/{own}/insert");
    ensure!(post(&urls[0], TEST_KEY, &insert, &rows(0, 95))?.status == 200, "the first rows have room");
    for url in urls {
        // Before it has looked a node does not know what came to the others: it writes what is there already.
        let answer = becomes("beyond the quota", 429, || post(url, TEST_KEY, &insert, &rows(80, 15)))?;
        let text = answer.text();
        ensure!(text.contains("limits.quotas") && text.contains("of at most 100"), "it does not say why: {text}");
        ensure!(answer.header("retry-after").is_some(), "429 without Retry-After");
        let small = post(
            url,
            TEST_KEY,
            "/logs3",
            &json!({"rows": [{"project_id": own, "log_id": "g", "id": "r1", "input": 2}]}),
        )?;
        ensure!(small.status == 200, "one more has room: {}", small.text());
    }
    let place = ["--data-dir", data_dir.to_str().context("a path that is text")?];
    let words = ["admin", "create-organization", OTHER, "--owner", "owner@globex.example"];
    let made = run(&[words.as_slice(), &place].concat(), &[], "")?.json()?;
    let other = made["api_key"].as_str().context("a key")?;
    let elsewhere = format!("/v1/project_logs/{}/insert", project(&urls[0], other)?);
    let answer = post(urls.last().context("a node")?, other, &elsewhere, &rows(0, 500))?;
    ensure!(answer.status == 200, "no rule is about them: {}", answer.text());
    has_no_room_for_a_file(&urls[0])?;
    let gone: Vec<_> = (0..50).map(|row| json!({"id": format!("r{row}"), "_object_delete": true})).collect();
    let deleted = post(&urls[0], TEST_KEY, &insert, &json!({ "events": gone }))?;
    ensure!(deleted.status == 200, "deletes are let in: {}", deleted.text());
    for url in urls {
        becomes("what was deleted makes room", 200, || post(url, TEST_KEY, &insert, &rows(80, 15)))?;
    }
    Ok(())
}

#[test]
fn a_quota_holds_on_one_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let settings = vec![format!("limits.quotas={RULES}")];
    let server =
        Server::start(&Options { settings, ..Options::new(&data) }).unwrap_or_else(|error| panic!("{error:#}"));
    let held = holds(std::slice::from_ref(&server.url), &data);
    held.unwrap_or_else(|error| panic!("{error:#}\n{}", server.log()));
}

#[test]
fn a_quota_holds_on_three_nodes() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, &[("ASSAY_LIMITS_QUOTAS", RULES)]).unwrap_or_else(|error| panic!("{error:#}"));
    let held = holds(&dev.urls, &data.join("node-1"));
    held.unwrap_or_else(|error| panic!("{error:#}\n{}", dev.log()));
}
