//! Retention: rows older than their rule allows are gone from results, from earlier versions, and from the disk.
//! Younger rows and rows without a rule stay.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::http::{Request, send};
use assay_test_api::rows::call;
use assay_test_api::search::Texts;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

const SETTINGS: [(&str, &str); 2] = [("ASSAY_STORE_ERASE_AFTER_SECONDS", "1"), ("ASSAY_RETENTION_EVERY_SECONDS", "1")];
const GONE_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(250);
const OLD: &str = "zygomorphic-quincunx-vellichor";
const OLDER: &str = "sesquipedalian-borborygmus-tmesis";
const YOUNG: &str = "absquatulate-gallimaufry-kerfuffle";

fn made(url: &str, path: &str, body: &Value) -> Result<String> {
    call(url, "POST", path, body)?["id"].as_str().map(str::to_owned).context("an id")
}

/// Old rows of an object and young ones.
fn filled(url: &str, path: &str) -> Result<String> {
    let rows = json!({"events": [
        {"id": "old", "input": OLD, "created": "2020-01-01T00:00:00Z"},
        {"id": "older", "input": OLDER, "created": "2019-06-01T00:00:00Z"},
        {"id": "young", "input": YOUNG},
    ]});
    call(url, "POST", &format!("{path}/insert"), &rows)?;
    let page = call(url, "POST", &format!("{path}/fetch"), &json!({}))?;
    let version = page["events"].as_array().context("events")?.iter().filter_map(|row| row["_xact_id"].as_str()).max();
    version.map(str::to_owned).context("a version")
}

fn ids(url: &str, path: &str) -> Result<Vec<String>> {
    let page = call(url, "POST", &format!("{path}/fetch"), &json!({}))?;
    let rows = page["events"].as_array().context("events")?;
    let mut ids: Vec<_> = rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect();
    ids.sort_unstable();
    Ok(ids)
}

fn holds(what: &str, test: impl Fn() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !test()? {
        ensure!(begun.elapsed() < GONE_WITHIN, "{what}: not within {GONE_WITHIN:?}");
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn retained(urls: &[String], data: &[std::path::PathBuf]) -> Result<()> {
    let url = &urls[0];
    let project = made(url, "/v1/project", &json!({"name": "kept for a while"}))?;
    let other = made(url, "/v1/project", &json!({"name": "kept for good"}))?;
    let experiment = made(url, "/v1/experiment", &json!({"project_id": other, "name": "e"}))?;
    let (logs, other_logs) = (format!("/v1/project_logs/{project}"), format!("/v1/project_logs/{other}"));
    let in_experiment = format!("/v1/experiment/{experiment}");
    let version = filled(url, &logs)?;
    call(
        url,
        "POST",
        &format!("{other_logs}/insert"),
        &json!({"events": [{"id": "a", "created": "2019-01-01T00:00:00Z"}]}),
    )?;
    filled(url, &in_experiment)?;
    let rule = |object: &str| json!({"event_type": "retention", "object_type": object, "retention_days": 365});
    made(url, "/v1/project_automation", &json!({"project_id": project, "name": "r", "config": rule("project_logs")}))?;
    let org = call(url, "GET", "/ping", &Value::Null)?["org_id"].clone();
    made(url, "/v1/org_automation", &json!({"org_id": org, "name": "r", "config": rule("experiment")}))?;
    for (place, path) in [&logs, &in_experiment].into_iter().enumerate() {
        let url = &urls[place % urls.len()];
        holds(path, || Ok(ids(url, path)? == ["young"]))?;
    }
    ensure!(ids(url, &other_logs)? == ["a"], "no rule is about it");
    let fetch = |url: &str| {
        let request = Request {
            method: "POST".into(),
            target: format!("{logs}/fetch"),
            headers: vec![
                ("authorization".into(), format!("Bearer {}", TEST_KEY)),
                ("content-type".into(), "application/json".into()),
            ],
            body: Some(json!({"version": version}).to_string().into_bytes()),
            ..Request::default()
        };
        send(url, &request)
    };
    holds("a version that shows what is gone", || Ok(fetch(url)?.status == 410))?;
    for dir in data {
        holds(&format!("{}", dir.display()), || Ok(Texts::new([OLD, OLDER]).below(dir).is_empty()))?;
        // A compaction may take a file away while the directory is read.
        holds("what is young stays", || Ok(!Texts::new([YOUNG]).below(dir).is_empty()))?;
    }
    Ok(())
}

#[test]
fn what_is_too_old_goes() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let settings = vec!["store.erase_after_seconds=1".into(), "retention.every_seconds=1".into()];
    let server =
        Server::start(&Options { settings, ..Options::new(&data) }).unwrap_or_else(|error| panic!("{error:#}"));
    retained(std::slice::from_ref(&server.url), &[data]).unwrap_or_else(|error| panic!("{error:#}\n{}", server.log()));
    assert!(server.stop().expect("stops").success());
}

#[test]
fn what_is_too_old_goes_on_three_nodes() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, &SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    let dirs: Vec<_> = (1..=NODES).map(|node| data.join(format!("node-{node}"))).collect();
    retained(&dev.urls, &dirs).unwrap_or_else(|error| panic!("{error:#}\n{}", dev.log()));
}
