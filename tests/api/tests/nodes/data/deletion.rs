//! Deletion: deleted data is in no file after the configured time: in no segment, log or blob, and not on a node that
//! was away meanwhile. Everything else is there, and `assay doctor` finds nothing wrong.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::process::run;
use assay_test_api::rows::call;
use assay_test_api::search::Texts;
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

const ROWS: usize = 40;
const POLL: Duration = Duration::from_millis(250);
/// Retention of a blob that was sent ahead of its entry twice is a minute.
const GONE_WITHIN: Duration = Duration::from_secs(120);
/// Rows above this go to files of their own.
const LARGE_BYTES: usize = 700 << 10;
const SETTING: &str = "ASSAY_STORE_ERASE_AFTER_SECONDS";
/// A node that is stopped: not one of those used meanwhile.
const AWAY: usize = 3;

/// Letters that compress to themselves: no word comes twice.
fn word(of: &str, number: usize) -> String {
    let mut state =
        (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ of.len() as u64 ^ u64::from(of.as_bytes()[0]);
    let mut letters = format!("{of}-");
    for _ in 0..40 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        letters.push(char::from(b'a' + (state % 26) as u8));
    }
    letters
}

fn words(of: &str) -> Vec<String> {
    (0..ROWS).map(|number| word(of, number)).collect()
}

/// Returns the files that contain any of the words.
fn found(dir: &Path, words: &[String]) -> BTreeSet<String> {
    Texts::new(words.iter().map(String::as_str)).below(dir)
}

/// An experiment with a row for each word, the first of them large.
fn experiment(url: &str, project: &str, of: &str) -> Result<String> {
    let made = call(url, "POST", "/v1/experiment", &json!({"project_id": project, "name": of}))?;
    let id = made["id"].as_str().context("an id")?.to_owned();
    let row = |(number, word): (usize, String)| {
        let more = if number == 0 { "x".repeat(LARGE_BYTES) } else { String::new() };
        json!({"id": format!("{of} {number}"), "input": word, "output": more})
    };
    for rows in words(of).into_iter().enumerate().map(row).collect::<Vec<_>>().chunks(10) {
        call(url, "POST", &format!("/v1/experiment/{id}/insert"), &json!({ "events": rows }))?;
    }
    Ok(id)
}

fn rows_of(url: &str, id: &str) -> Result<usize> {
    let page = call(url, "POST", &format!("/v1/experiment/{id}/fetch"), &json!({"limit": 1000}))?;
    Ok(page["events"].as_array().context("events")?.len())
}

fn gone(dir: &Path, words: &[String], log: impl Fn() -> String) -> Result<()> {
    let begun = Instant::now();
    loop {
        let left = found(dir, words);
        if left.is_empty() {
            println!("{}: gone after {:?}", dir.display(), begun.elapsed());
            return Ok(());
        }
        ensure!(begun.elapsed() < GONE_WITHIN, "after {GONE_WITHIN:?}: {left:#?}\n{}", log());
        std::thread::sleep(POLL);
    }
}

fn is_well(dir: &Path) -> Result<()> {
    let said = run(&["doctor", "--data-dir", dir.to_str().context("a path that is text")?], &[], "")?;
    ensure!(said.success, "{}{}", said.out, said.errors);
    Ok(())
}

#[test]
fn what_was_deleted_is_in_no_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let options = Options { settings: vec!["store.erase_after_seconds=1".into()], ..Options::new(&data) };
    let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let mut log = String::new();
    let erased = || -> Result<()> {
        let project = call(&server.url, "POST", "/v1/project", &json!({"name": "p"}))?;
        let project = project["id"].as_str().context("an id")?.to_owned();
        let (kept, deleted) =
            (experiment(&server.url, &project, "kept")?, experiment(&server.url, &project, "deleted")?);
        ensure!(!found(&data, &words("deleted")).is_empty(), "what is not there cannot go");
        call(&server.url, "DELETE", &format!("/v1/experiment/{deleted}"), &Value::Null)?;
        gone(&data, &words("deleted"), || server.log())?;
        ensure!(rows_of(&server.url, &kept)? == ROWS, "another one lost rows");
        // The log was copied; what is written behind it counts as before.
        let more = experiment(&server.url, &project, "more")?;
        ensure!(rows_of(&server.url, &more)? == ROWS, "what came later is not there");
        Ok(())
    };
    let done = erased();
    log.push_str(&server.log());
    done.unwrap_or_else(|error| panic!("{error:#}\n{log}"));
    server.stop().expect("stops");
    is_well(&data).unwrap_or_else(|error| panic!("{error:#}"));
    let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(found(&data, &words("deleted")).is_empty(), "a start brought it back");
    assert!(server.stop().expect("stops").success());
}

#[test]
#[ignore = "up to two minutes: .ci/run asks for it"]
fn what_was_deleted_is_in_no_file_of_a_node_that_was_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, &[(SETTING, "1")]).unwrap_or_else(|error| panic!("{error:#}"));
    let of_node = |node: usize| data.join(format!("node-{node}"));
    let erased = || -> Result<()> {
        let url = &dev.urls[0];
        let project = call(url, "POST", "/v1/project", &json!({"name": "p"}))?;
        let project = project["id"].as_str().context("an id")?.to_owned();
        let (kept, deleted) = (experiment(url, &project, "kept")?, experiment(url, &project, "deleted")?);
        // A read behind the last write of a node has it applied there, and so written.
        rows_of(&dev.urls[AWAY - 1], &deleted)?;
        for node in 1..=NODES {
            ensure!(!found(&of_node(node), &words("deleted")).is_empty(), "node {node} never had it");
        }
        dev.kill(AWAY)?;
        let mut deleting = call(url, "DELETE", &format!("/v1/experiment/{deleted}"), &Value::Null);
        // The one that is away may have led: then somebody else has to be found first.
        for _ in 0..20 {
            if deleting.is_ok() {
                break;
            }
            std::thread::sleep(POLL * 2);
            deleting = call(url, "DELETE", &format!("/v1/experiment/{deleted}"), &Value::Null);
        }
        deleting?;
        for node in (1..=NODES).filter(|node| *node != AWAY) {
            gone(&of_node(node), &words("deleted"), || dev.log())?;
        }
        ensure!(!found(&of_node(AWAY), &words("deleted")).is_empty(), "it was away");
        let options =
            Options { key: None, settings: vec!["store.erase_after_seconds=1".into()], ..Options::new(&of_node(AWAY)) };
        let back = Server::start(&options)?;
        gone(&of_node(AWAY), &words("deleted"), || back.log())?;
        ensure!(rows_of(&back.url, &kept)? == ROWS, "another one lost rows");
        ensure!(back.stop()?.success(), "it stops well");
        is_well(&of_node(AWAY))
    };
    erased().unwrap_or_else(|error| panic!("{error:#}\n{}", dev.log()));
}
