//! Attachments: readable with permission for the rows that name them, on any node; deleted with their bytes when no row
//! names them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process::run;
use assay_test_api::rows::call;
use assay_test_api::search::Texts;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

const ORGANIZATION: &str = "default";
/// A change of access is known everywhere by then.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);
const GONE_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(250);

fn ask(url: &str, key: &str, method: &str, target: &str, body: Option<&[u8]>) -> Result<HttpResponse> {
    let headers = vec![("authorization".into(), format!("Bearer {key}"))];
    let body = body.map(<[u8]>::to_vec);
    let request = Request { method: method.into(), target: target.into(), headers, body, declared_length: None };
    send(url, &request)
}

fn asked(url: &str, key: &str, method: &str, target: &str, body: &Value) -> Result<HttpResponse> {
    ask(url, key, method, target, Some(body.to_string().as_bytes()))
}

/// The path of an address that was handed out, for another node.
fn path(address: &Value) -> Result<String> {
    let address = address.as_str().context("an address")?;
    let path = address.split_once("//").and_then(|(_, rest)| rest.split_once('/')).context("a path")?.1;
    Ok(format!("/{path}"))
}

fn upload(urls: [&str; 2], key: &str, bytes: &[u8]) -> Result<()> {
    let body = json!({"key": key, "filename": "f.bin", "content_type": "application/octet-stream", "org_id": ""});
    let said = call(urls[0], "POST", "/attachment", &body)?;
    let sent = ask(urls[1], "no key", "PUT", &path(&said["signedUrl"])?, Some(bytes))?;
    ensure!(sent.status == 200, "{}: {}", sent.status, sent.text());
    Ok(())
}

fn reference(key: &str) -> Value {
    json!({"type": "braintrust_attachment", "filename": "f.bin", "content_type": "application/octet-stream", "key": key})
}

fn look(url: &str, credential: &str, key: &str) -> Result<u16> {
    Ok(ask(url, credential, "GET", &format!("/attachment?key={key}"), None)?.status)
}

/// Returns the path of a download that a credential requests.
fn address_for(url: &str, credential: &str, key: &str) -> Result<String> {
    let said = ask(url, credential, "GET", &format!("/attachment?key={key}"), None)?;
    path(&serde_json::from_slice::<Value>(&said.body)?["downloadUrl"])
}

/// Waits until every node answers a download with this status.
fn addresses_answer(urls: &[String], address: &str, wanted: u16) -> Result<()> {
    for url in urls {
        let begun = Instant::now();
        loop {
            let found = ask(url, "no key", "GET", address, None)?.status;
            if found == wanted {
                break;
            }
            ensure!(begun.elapsed() < KNOWN_WITHIN, "{url} answers the download with {found} and not {wanted}");
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

fn is_answered(urls: &[String], credential: &str, key: &str, wanted: u16) -> Result<()> {
    for url in urls {
        let begun = Instant::now();
        loop {
            let found = look(url, credential, key)?;
            if found == wanted {
                break;
            }
            ensure!(begun.elapsed() < KNOWN_WITHIN, "{url} answers {found} and not {wanted}");
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

fn made(url: &str, target: &str, body: &Value) -> Result<String> {
    Ok(call(url, "POST", target, body)?["id"].as_str().context("an id")?.to_owned())
}

fn admin(node: &Path, words: &[&str]) -> Result<Value> {
    let place = ["--data-dir", node.to_str().context("a path that is text")?];
    run(&[&["admin"], words, &place[..]].concat(), &[], "")?.json()
}

#[test]
fn an_attachment_is_read_by_who_may_read_what_names_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start(&data).unwrap_or_else(|error| panic!("{error:#}"));
    let held = held(&dev.urls, &data.join("node-1"));
    held.unwrap_or_else(|error| panic!("{error:#}\n{}", dev.log()));
}

fn held(urls: &[String], node: &Path) -> Result<()> {
    let [a, b, c] = [urls[0].as_str(), urls[1].as_str(), urls[2].as_str()];
    call(a, "PATCH", "/v1/organization/members", &json!({"invite_users": {"emails": ["bob@example.com"]}}))?;
    let made_key = admin(node, &["create-key", "bobs", "--organization", ORGANIZATION, "--user", "bob@example.com"])?;
    let bob = made_key["api_key"].as_str().with_context(|| made_key.to_string())?.to_owned();
    let globex = admin(node, &["create-organization", "globex", "--owner", "owner@globex.example"])?;
    let other = globex["api_key"].as_str().with_context(|| globex.to_string())?.to_owned();
    let users = call(b, "GET", "/v1/user?email=bob@example.com", &Value::Null)?;
    let user = users["objects"][0]["id"].as_str().context("bob")?.to_owned();

    let project = made(b, "/v1/project", &json!({"name": "files"}))?;
    let first = made(c, "/v1/experiment", &json!({"project_id": project, "name": "first"}))?;
    let second = made(a, "/v1/experiment", &json!({"project_id": project, "name": "second"}))?;
    let key = "5b6f2c1e-8f4e-4a57-9f2b-2f8a5f1c0001";
    let insert = |experiment: &str| format!("/v1/experiment/{experiment}/insert");
    let named = json!({"events": [{"id": "row", "input": {"deep": [reference(key)]}}]});
    call(a, "POST", &insert(&first), &named)?;
    let bytes: Vec<u8> = (0..600_000_u32).map(|number| (number % 251) as u8).collect();
    upload([b, c], key, &bytes)?;

    // What one node took any node gives.
    for url in urls {
        let said = call(url, "GET", &format!("/attachment?key={key}"), &Value::Null)?;
        ensure!(said["status"]["upload_status"] == "done", "{said}");
        for other in urls {
            let got = ask(other, "no key", "GET", &path(&said["downloadUrl"])?, None)?;
            ensure!((got.status, &got.body) == (200, &bytes), "{}: {} bytes", got.status, got.body.len());
        }
    }
    // Others of the organization learn nothing of it, and take nothing over.
    is_answered(urls, &bob, key, 404)?;
    is_answered(urls, &other, key, 404)?;
    let again = json!({"key": key, "filename": "f", "content_type": "text/plain"});
    let answer = asked(a, &bob, "POST", "/attachment", &again)?;
    ensure!(answer.status == 409, "{}: {}", answer.status, answer.text());
    let elsewhere = json!({"key": key, "org_id": "00000000-0000-4000-8000-000000000001"});
    let answer = asked(a, &bob, "POST", "/attachment", &elsewhere)?;
    ensure!(answer.status == 404, "{}: {}", answer.status, answer.text());

    // Who may read an experiment may read what its rows name.
    let grant = |experiment: &str, permission: &str| {
        let on =
            json!({"object_type": "experiment", "object_id": experiment, "user_id": user, "permission": permission});
        made(b, "/v1/acl", &on)
    };
    let read = grant(&first, "read")?;
    is_answered(urls, &bob, key, 200)?;
    let address = address_for(a, &bob, key)?;
    addresses_answer(urls, &address, 200)?;
    call(c, "DELETE", &format!("/v1/acl/{read}"), &Value::Null)?;
    is_answered(urls, &bob, key, 404)?;
    // An address that is out ends with the right, and with the key that asked for it.
    addresses_answer(urls, &address, 403)?;
    let short = admin(node, &["create-key", "short", "--organization", ORGANIZATION, "--user", "owner@localhost"])?;
    let address = address_for(b, short["api_key"].as_str().context("a key")?, key)?;
    addresses_answer(urls, &address, 200)?;
    admin(node, &["delete-key", short["id"].as_str().context("an id")?])?;
    addresses_answer(urls, &address, 401)?;
    // Naming what one may not read opens nothing.
    grant(&second, "read")?;
    grant(&second, "update")?;
    std::thread::sleep(KNOWN_WITHIN);
    let written = asked(b, &bob, "POST", &insert(&second), &named)?;
    ensure!(written.status == 200, "{}: {}", written.status, written.text());
    is_answered(urls, &bob, key, 404)
}

/// Encodes the text as the bytes are stored.
fn base64(text: &str) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sign = |number: u32| char::from(SIGNS[(number & 63) as usize]);
    let three = |bytes: &[u8]| {
        let number = bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        [sign(number >> 18), sign(number >> 12), sign(number >> 6), sign(number)]
    };
    text.as_bytes().chunks_exact(3).flat_map(three).collect()
}

/// Letters that compress to themselves.
fn letters(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..60).map(|_| next()).collect()
}

fn kept(data: &Path, texts: &[String]) -> BTreeSet<String> {
    let encoded: Vec<String> = texts.iter().map(|text| base64(text)).collect();
    Texts::new(encoded.iter().map(String::as_str)).below(data)
}

fn is_gone(data: &Path, text: &str) -> Result<()> {
    let begun = Instant::now();
    while !kept(data, &[text.to_owned()]).is_empty() {
        ensure!(begun.elapsed() < GONE_WITHIN, "its bytes are still there");
        std::thread::sleep(POLL);
    }
    Ok(())
}

#[test]
fn what_nothing_names_is_taken_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let settings = [
        "store.erase_after_seconds=1",
        "files.collect_every_seconds=1",
        "files.unnamed_seconds=3",
        "files.overflow_seconds=3",
        "files.upload_seconds=3",
    ];
    let options = Options { settings: settings.map(str::to_owned).to_vec(), ..Options::new(&data) };
    let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let done = taken_away(&server.url, &data);
    done.unwrap_or_else(|error| panic!("{error:#}\n{}", server.log()));
    assert!(server.stop().expect("stops").success());
    let said = run(&["doctor", "--data-dir", data.to_str().expect("text")], &[], "").expect("runs");
    assert!(said.success, "{}{}", said.out, said.errors);
}

fn taken_away(url: &str, data: &Path) -> Result<()> {
    let project = made(url, "/v1/project", &json!({"name": "files"}))?;
    let experiment = made(url, "/v1/experiment", &json!({"project_id": project, "name": "one"}))?;
    let texts: Vec<String> = (1..=4).map(letters).collect();
    let [named, unnamed, replaced, rows] = [&texts[0], &texts[1], &texts[2], &texts[3]];
    let row = json!({"events": [{"id": "row", "input": reference("named")}]});
    call(url, "POST", &format!("/v1/experiment/{experiment}/insert"), &row)?;
    upload([url, url], "named", replaced.as_bytes())?;
    upload([url, url], "named", named.as_bytes())?;
    upload([url, url], "unnamed", unnamed.as_bytes())?;
    let overflow = call(url, "POST", "/logs3/overflow", &json!({}))?;
    let sent = ask(url, "no key", "PUT", &path(&overflow["signedUrl"])?, Some(rows.as_bytes()))?;
    ensure!(sent.status == 200, "{}", sent.text());
    ensure!(kept(data, &texts).len() == texts.len(), "what is not there cannot go");
    for gone in [unnamed, replaced, rows] {
        is_gone(data, gone)?;
    }
    ensure!(look(url, TEST_KEY, "unnamed")? == 404, "what is gone is answered");
    let said = call(url, "GET", "/attachment?key=named", &Value::Null)?;
    let got = ask(url, "no key", "GET", &path(&said["downloadUrl"])?, None)?;
    ensure!(got.text() == *named, "what a row names is not there");
    call(url, "DELETE", &format!("/v1/experiment/{experiment}"), &Value::Null)?;
    is_gone(data, named)?;
    ensure!(look(url, TEST_KEY, "named")? == 404, "what is gone is answered");
    Ok(())
}
