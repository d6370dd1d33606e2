//! Long results over three nodes: a client that pauses, and loses a node meanwhile, gets each row once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, SILENCE_MAX, parse, request_bytes, send};
use serde_json::{Value, json};

const EXPERIMENTS: usize = 12;
const ROWS_EACH: usize = 20;
/// The rows together are longer than what nodes and sockets hold of a response.
const TEXT_BYTES: usize = 256 << 10;
/// Longer than a stream between nodes waits for its reader.
const PAUSE: Duration = Duration::from_secs(7);
const READ_BEFORE_PAUSE: usize = 1 << 20;

fn post(dev: &Dev, target: &str, body: &Value) -> Request {
    let headers = vec![("authorization".into(), format!("Bearer {}", dev.key))];
    let body = Some(body.to_string().into_bytes());
    Request { method: "POST".into(), target: target.into(), headers, body, declared_length: None }
}

fn call(dev: &Dev, target: &str, body: &Value) -> Result<Value> {
    let answer = send(&dev.urls[0], &post(dev, target, body))?;
    ensure!(answer.status == 200, "POST {target}: {}: {}", answer.status, answer.text());
    Ok(serde_json::from_str(&answer.text())?)
}

fn experiments(dev: &Dev) -> Result<Vec<String>> {
    let project = call(dev, "/v1/project", &json!({"name": "long"}))?["id"].clone();
    let text = "x".repeat(TEXT_BYTES);
    let mut ids = Vec::new();
    for number in 0..EXPERIMENTS {
        let made = call(dev, "/v1/experiment", &json!({"project_id": project, "name": format!("e{number}")}))?;
        let id = made["id"].as_str().context("an id")?.to_owned();
        let event = |row: usize| json!({"id": format!("{number}-{row}"), "input": text});
        let events: Vec<Value> = (0..ROWS_EACH).map(event).collect();
        call(dev, &format!("/v1/experiment/{id}/insert"), &json!({ "events": events }))?;
        ids.push(format!("'{id}'"));
    }
    Ok(ids)
}

/// Reads some of a response, waits, loses a node, and reads the rest.
fn read_with_pause(dev: &Dev, request: &Request) -> Result<HttpResponse> {
    let address = dev.urls[0].strip_prefix("http://").context("an address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.write_all(&request_bytes(address, request))?;
    let mut bytes = vec![0; READ_BEFORE_PAUSE];
    stream.read_exact(&mut bytes)?;
    std::thread::sleep(PAUSE);
    dev.kill(2)?;
    stream.read_to_end(&mut bytes)?;
    parse(&bytes)?.context("the end of the response is missing")
}

fn checked(dev: &Dev) -> Result<()> {
    let from = experiments(dev)?.join(", ");
    let ids_alone = call(dev, "/btql", &json!({"query": format!("SELECT id FROM experiment({from})")}))?;
    let rows = ids_alone["data"].as_array().context("rows")?.iter();
    let expected: Vec<String> = rows.filter_map(|row| row["id"].as_str().map(str::to_owned)).collect();
    ensure!(expected.len() == EXPERIMENTS * ROWS_EACH, "{} rows were written", expected.len());
    let query =
        json!({"query": format!("SELECT id, input FROM experiment({from})"), "fmt": "jsonl", "disable_limit": true});
    let answer = read_with_pause(dev, &post(dev, "/btql", &query))?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
    let mut ids = Vec::new();
    for line in answer.text().lines() {
        let row: Value = serde_json::from_str(line)?;
        ensure!(row["input"].as_str().map(str::len) == Some(TEXT_BYTES), "{} is cut", row["id"]);
        ids.push(row["id"].as_str().context("an id")?.to_owned());
    }
    ensure!(ids == expected, "{} rows instead of {}, or in another order: {ids:?}", ids.len(), expected.len());
    Ok(())
}

#[test]
fn a_reader_that_pauses_gets_each_row_once_though_a_node_is_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&dir.path().join("data")).unwrap_or_else(|error| panic!("{error:#}"));
    checked(&dev).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
    dev.kill_all();
}
