//! A tenant that uses all it can get of the node's budgets: another one is served as if it were alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process::run;
use assay_test_api::rows::knock;
use assay_test_api::server::TEST_KEY;
use serde_json::{Value, json};

const ATTACKER: &str = "mallory";
const LASTS: Duration = Duration::from_secs(10);
/// Duration of the attack in the original finding.
const AS_FOUND: Duration = Duration::from_secs(24);
/// Duration of the neighbour's measurement on idle nodes.
const CALM_LASTS: Duration = Duration::from_secs(3);
/// Margin for a busy machine: attack, neighbour and nodes share its cores.
const SLOWER_BY_MAX: Duration = Duration::from_millis(100);
const HEALTH_WITHIN: Duration = Duration::from_secs(1);
/// Three quarters of the budget of bodies. The attack begins without competitors, so it gets more than half.
const HELD_BY_ATTACK: u64 = 48 << 20;
const ATTACK_BEGINS_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an upload at a time, ten times a second.
const TRICKLE: [u8; 430] = [b'x'; 430];

fn ask(url: &str, organization: &str, target: &str, body: &Value) -> Result<HttpResponse> {
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

/// Starts 21 slow uploads, and bodies that do not end: of 60 KB down to 30 bytes as in the original finding, and of 1
/// MB, which fill every budget that counts declared lengths.
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

/// Runs one round of the neighbour; every response is a 200.
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

/// Number and duration of requests, and how much slower the other tenant may become.
struct RequestForm {
    nodes: usize,
    lasts: Duration,
    /// Limit as a multiple of the p99 of the same rounds on idle nodes, in addition to [`SLOWER_BY_MAX`].
    slower_max: Option<u32>,
}

/// Holds that the neighbour is served while an attack lasts. `attack` begins it at one node, `goes_on` is called ten times a
/// second with what it made.
fn neighbour_is_served<T: Send>(
    form: &RequestForm,
    attack: impl Fn(&str) -> Result<T>,
    goes_on: impl Fn(&mut T) + Sync,
) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    // As the defaults were when this was found.
    let settings = ["ASSAY_HTTP_BODIES_BYTES_MAX", "ASSAY_HTTP_PARSED_BYTES_MAX"].map(|name| (name, "67108864"));
    let dev = Dev::start_nodes(form.nodes, &data, &settings)?;
    let place = data.join("node-1");
    let place = place.to_str().context("a path that is text")?;
    let create = ["admin", "create-organization", ATTACKER, "--owner", "owner@localhost", "--data-dir", place];
    run(&create, &[], "")?.json()?;
    let project = asked(&dev.urls[0], "default", "/v1/project", &json!({"name": "p"}))?;
    let project = project["id"].as_str().context("an id")?;
    let calm = rounds(&dev.urls, project, CALM_LASTS)?;

    let mut attacks = dev.urls.iter().map(|url| attack(url)).collect::<Result<Vec<T>>>()?;
    let is_over = AtomicBool::new(false);
    let served = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                attacks.iter_mut().for_each(&goes_on);
                thread::sleep(Duration::from_millis(100));
            }
        });
        let served = rounds(&dev.urls, project, form.lasts);
        is_over.store(true, Ordering::Relaxed);
        served
    });
    drop(attacks);
    let beside = served.with_context(|| format!("the nodes said:\n{}", dev.log()))?;
    let (idle, busy) = (p99(&calm), p99(&beside));
    println!("{} rounds; p99 {idle:?} on idle nodes, {busy:?} beside the attack", beside.len());
    ensure!(beside.len() >= 5, "only {} rounds in {:?}", beside.len(), form.lasts);
    if let Some(times) = form.slower_max {
        ensure!(busy <= idle * times + SLOWER_BY_MAX, "p99 of a round went from {idle:?} to {busy:?}");
    }
    Ok(())
}

/// Rounds of the neighbour at all nodes in turn: how long each took.
fn rounds(urls: &[String], project: &str, lasts: Duration) -> Result<Vec<Duration>> {
    let (began, mut took) = (Instant::now(), Vec::new());
    while began.elapsed() < lasts {
        let (number, begun) = (took.len(), Instant::now());
        round(&urls[number % urls.len()], project, number).with_context(|| format!("round {number}"))?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

fn p99(took: &[Duration]) -> Duration {
    let mut took = took.to_vec();
    took.sort_unstable();
    took.get(took.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
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

fn beside_bodies(form: &RequestForm) {
    let attack = |url: &str| {
        let made = attack(url)?;
        attack_has_begun(url).map(|()| made)
    };
    let goes_on = |(uploads, _): &mut (Vec<TcpStream>, Vec<TcpStream>)| {
        uploads.iter_mut().for_each(|upload| drop(upload.write_all(&TRICKLE)));
    };
    neighbour_is_served(form, attack, goes_on).unwrap_or_else(|error| panic!("{error:#}"));
}

/// Connections that were answered once and stay.
fn asked_once(url: &str, count: usize) -> Result<Vec<TcpStream>> {
    let ask = |_| {
        let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
        stream.set_read_timeout(Some(LASTS))?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        ensure!(stream.read(&mut [0; 1024])? > 0, "closed without an answer");
        Ok(stream)
    };
    (0..count).map(ask).collect()
}

#[test]
fn slow_uploads_and_bodies_without_an_end_of_one_tenant_leave_another_alone() {
    beside_bodies(&RequestForm { nodes: 1, lasts: LASTS, slower_max: None });
}

#[test]
fn slow_uploads_and_bodies_without_an_end_of_one_tenant_leave_another_alone_on_three_nodes() {
    beside_bodies(&RequestForm { nodes: 3, lasts: LASTS, slower_max: None });
}

#[test]
#[ignore = "a minute, on a release build: .ci/run runs it"]
fn bodies_without_an_end_as_they_were_found() {
    for nodes in [1, 3] {
        beside_bodies(&RequestForm { nodes, lasts: AS_FOUND, slower_max: Some(3) });
    }
}

#[test]
#[ignore = "a minute, and a file limit of 10,000, on a release build: .ci/run runs it"]
fn connections_of_nobody_as_they_were_found() {
    const CONNECTIONS: usize = 4_300;
    for nodes in [1, 3] {
        let form = RequestForm { nodes, lasts: AS_FOUND, slower_max: Some(3) };
        let attack = |url: &str| asked_once(url, CONNECTIONS / nodes);
        neighbour_is_served(&form, attack, |_| ()).unwrap_or_else(|error| panic!("{error:#}"));
    }
}
