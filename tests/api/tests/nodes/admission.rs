//! One tenant that holds all it can get of the node's budgets: another one is served as if it were alone.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::http::{Answer, Request, send};
use assay_test_api::process::run;
use assay_test_api::rows::knock;
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

const ATTACKER: &str = "mallory";
const LASTS: Duration = Duration::from_secs(10);
const HEALTH_WITHIN: Duration = Duration::from_secs(1);
/// Three quarters of the budget of bodies. Nobody else waits while the attack begins, so it gets more than half.
const HELD_BY_ATTACK: u64 = 48 << 20;
const ATTACK_BEGINS_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an upload at a time, ten times a second.
const TRICKLE: [u8; 430] = [b'x'; 430];

fn ask(url: &str, organization: &str, target: &str, body: &Value) -> Result<Answer> {
    let headers = vec![
        ("authorization".into(), format!("Bearer {TEST_KEY}")),
        ("x-bt-org-name".into(), organization.into()),
        ("content-type".into(), "application/json".into()),
    ];
    let body = Some(body.to_string().into_bytes());
    send(url, &Request { method: "POST".into(), target: target.into(), headers, body, declared_length: None })
}

fn asked(url: &str, organization: &str, target: &str, body: &Value) -> Result<Value> {
    let answer = ask(url, organization, target, body)?;
    ensure!(answer.status == 200, "POST {target} of {organization}: {}: {}", answer.status, answer.text());
    serde_json::from_slice(&answer.body).context("no JSON")
}

/// A request with a body of which this much is sent.
fn unfinished(url: &str, head: &str, length: usize, sent: usize) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
    stream.set_write_timeout(Some(LASTS))?;
    stream.write_all(format!("{head}Host: a\r\nContent-Length: {length}\r\n\r\n").as_bytes())?;
    stream.write_all(&vec![b' '; sent])?;
    Ok(stream)
}

/// 21 slow uploads, and bodies that do not end: of 60 KB down to 30 bytes as they came from the tester, and of 1 MB, which
/// fill every budget that counts what is announced.
fn attack(url: &str) -> Result<(Vec<TcpStream>, Vec<TcpStream>)> {
    let mut uploads = Vec::new();
    for number in 0..21 {
        let key = uuid(number);
        let body = json!({"key": key, "filename": "f", "content_type": "application/octet-stream", "org_id": ""});
        let said = asked(url, ATTACKER, "/attachment", &body)?;
        let address = said["signedUrl"].as_str().context("an address")?;
        let path = &address[address.find("/attachment/bytes").context("a path")?..];
        uploads.push(unfinished(url, &format!("PUT {path} HTTP/1.1\r\n"), 8 << 20, 1000)?);
    }
    let insert =
        format!("POST /v1/insert HTTP/1.1\r\nAuthorization: Bearer {TEST_KEY}\r\nx-bt-org-name: {ATTACKER}\r\n");
    let mut bodies = Vec::new();
    for sent in [60_000, 20_000, 5_000, 1_000, 300, 100, 30].into_iter().flat_map(|bytes| [bytes; 20]) {
        bodies.push(unfinished(url, &insert, sent + 1, sent)?);
    }
    for _ in 0..80 {
        bodies.push(unfinished(url, &insert, 1_000_000, 30)?);
    }
    Ok((uploads, bodies))
}

fn uuid(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// What the neighbour does in one round; every answer is a 200.
fn round(url: &str, project: &str, number: usize) -> Result<()> {
    let target = format!("/v1/project_logs/{project}/insert");
    for bytes in [200, 200_000] {
        let row = json!({"id": format!("{number}-{bytes}"), "input": "x".repeat(bytes)});
        asked(url, "default", &target, &json!({"events": [row]}))?;
    }
    let query = json!({"query": format!("select: count(1) as n | from: project_logs('{project}')"), "fmt": "json"});
    asked(url, "default", "/btql", &query)?;
    let began = Instant::now();
    let (status, said) = knock(url, "/healthz")?;
    ensure!(status == 200 && began.elapsed() < HEALTH_WITHIN, "{status} after {:?}: {said}", began.elapsed());
    Ok(())
}

fn neighbour_is_served(dir: &Path) -> Result<()> {
    let data = dir.join("data");
    let mut options = Options::new(&data);
    // As the defaults were when this was found.
    options.settings = ["http.bodies_bytes_max=67108864", "http.parsed_bytes_max=67108864"].map(str::to_owned).into();
    let server = Server::start(&options)?;
    let place = data.to_str().context("a path that is text")?;
    let create = ["admin", "create-organization", ATTACKER, "--owner", "owner@localhost", "--data-dir", place];
    run(&create, &[], "")?.json()?;
    let project = asked(&server.url, "default", "/v1/project", &json!({"name": "p"}))?;
    let project = project["id"].as_str().context("an id")?;
    let (mut uploads, bodies) = attack(&server.url)?;
    attack_has_begun(&server.url)?;
    let is_over = AtomicBool::new(false);
    let served = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                uploads.iter_mut().for_each(|upload| drop(upload.write_all(&TRICKLE)));
                thread::sleep(Duration::from_millis(100));
            }
        });
        let served = rounds(&server.url, project);
        is_over.store(true, Ordering::Relaxed);
        served
    });
    drop(bodies);
    let rounds = served.with_context(|| format!("the server said:\n{}", server.log()))?;
    println!("{rounds} rounds of the neighbour were served");
    ensure!(rounds >= 5, "only {rounds} rounds in {LASTS:?}");
    Ok(())
}

fn rounds(url: &str, project: &str) -> Result<usize> {
    let (began, mut rounds) = (Instant::now(), 0);
    while began.elapsed() < LASTS {
        round(url, project, rounds).with_context(|| format!("round {rounds}"))?;
        rounds += 1;
    }
    Ok(rounds)
}

fn bytes_held(url: &str) -> Result<u64> {
    let (_, metrics) = knock(url, "/metrics")?;
    let held = metrics.lines().find_map(|line| line.strip_prefix("assay_http_body_bytes_held "));
    held.and_then(|held| held.parse().ok()).context("no metric assay_http_body_bytes_held")
}

/// Waits until the attack holds [`HELD_BY_ATTACK`]: before that it shows nothing.
fn attack_has_begun(url: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        let held = bytes_held(url)?;
        if held >= HELD_BY_ATTACK {
            return Ok(());
        }
        ensure!(begun.elapsed() < ATTACK_BEGINS_WITHIN, "the attack holds only {held} bytes, and shows nothing");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn slow_uploads_and_bodies_without_an_end_of_one_tenant_leave_another_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    neighbour_is_served(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
}
