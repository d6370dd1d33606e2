//! The corpus against one node, and against three in turn: every request is refused with a sentence, none hangs, and
//! nothing changes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use assay_test_api::case::{error_complaints, json_of};
use assay_test_api::corpus::{Corpus, Malformed};
use assay_test_api::dev::Dev;
use assay_test_api::http::{Exchange, HttpResponse, Request, exchange, send};
use assay_test_api::pattern::shortened;
use assay_test_api::server::{Options, Server};
use assay_test_api::template::Variables;
use serde_json::{Value, json};

/// A refusal that takes longer than this hangs.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Three nodes are sent one in so many.
const PART: usize = 5;
/// Complaints that are shown; the first ones are enough.
const SHOWN_MAX: usize = 100;

fn corpus() -> Corpus {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
    Corpus::read(&Path::new(&folder).join("corpus")).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Nodes that get the requests in turn.
#[derive(Debug)]
struct RoundRobin {
    urls: Vec<String>,
    key: String,
    asked: AtomicUsize,
}

impl RoundRobin {
    fn new(urls: &[String], key: &str) -> RoundRobin {
        RoundRobin { urls: urls.to_vec(), key: key.to_owned(), asked: AtomicUsize::new(0) }
    }

    fn next(&self) -> &str {
        &self.urls[self.asked.fetch_add(1, Ordering::Relaxed) % self.urls.len()]
    }
}

fn call(nodes: &RoundRobin, method: &str, target: &str, body: Option<Value>) -> Value {
    let request = Request {
        method: method.into(),
        target: target.into(),
        headers: vec![("authorization".into(), format!("Bearer {}", nodes.key))],
        body: body.map(|body| body.to_string().into_bytes()),
        declared_length: None,
    };
    let answer = send(nodes.next(), &request).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(answer.status, 200, "{method} {target}: {}", answer.text());
    json_of(&answer).unwrap_or_else(|problem| panic!("{method} {target}: {problem}"))
}

/// Objects with a row each, so that there is something that could change.
fn seeded(nodes: &RoundRobin) -> Variables {
    let made = |path: &str, body: Value| call(nodes, "POST", path, Some(body))["id"].clone();
    let project = made("/v1/project", json!({"name": "corpus"}));
    let experiment = made("/v1/experiment", json!({"project_id": project, "name": "corpus"}));
    let dataset = made("/v1/dataset", json!({"project_id": project, "name": "corpus"}));
    let variables = Variables::from([
        ("run".into(), json!("corpus")),
        ("key".into(), json!(nodes.key)),
        ("project".into(), project),
        ("experiment".into(), experiment),
        ("dataset".into(), dataset),
    ]);
    for path in row_paths(&variables) {
        call(nodes, "POST", &format!("{path}/insert"), Some(json!({"events": [{"id": "row", "input": {"a": [1]}}]})));
    }
    variables
}

fn row_paths(variables: &Variables) -> Vec<String> {
    let path = |family: &str, name: &str| format!("/v1/{family}/{}", variables[name].as_str().unwrap_or_default());
    vec![path("project_logs", "project"), path("experiment", "experiment"), path("dataset", "dataset")]
}

/// Everything that a client can see.
fn state(nodes: &RoundRobin, variables: &Variables) -> BTreeMap<String, Value> {
    let lists = ["project", "experiment", "dataset", "api_key"].map(|kind| format!("/v1/{kind}"));
    let mut seen: BTreeMap<_, _> =
        lists.into_iter().map(|path| (path.clone(), call(nodes, "GET", &path, None))).collect();
    for path in row_paths(variables) {
        let path = format!("{path}/fetch");
        seen.insert(path.clone(), call(nodes, "POST", &path, Some(json!({}))));
    }
    seen
}

fn complaints(nodes: &RoundRobin, malformed: &Malformed) -> Vec<String> {
    let begun = Instant::now();
    let answer = match exchange(nodes.next(), &malformed.request, ANSWER_MAX) {
        Ok(Exchange::Answered(answer)) => answer,
        Ok(Exchange::Closed) if malformed.may_close => return Vec::new(),
        Ok(Exchange::Closed) => return vec!["the connection was closed without an answer".into()],
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut found = Vec::new();
    if !(400..500).contains(&answer.status) {
        found.push(format!("answered {}", answer.status));
    } else {
        found.extend(error_complaints(&malformed.request, &answer, ""));
    }
    if begun.elapsed() > ANSWER_MAX {
        found.push(format!("took {:?}", begun.elapsed()));
    }
    if !found.is_empty() {
        found.push(format!("got: {}", shortened(&answer.text())));
    }
    found
}

/// Sends each `every`th of all requests. `alive` returns an error if the nodes failed.
fn are_refused(nodes: &RoundRobin, every: usize, mut alive: impl FnMut() -> Result<(), String>) {
    let variables = seeded(nodes);
    let before = state(nodes, &variables);
    let corpus = corpus();
    let all = corpus.malformed(&variables).unwrap_or_else(|error| panic!("{error:#}"));
    let all: Vec<Malformed> = all.into_iter().step_by(every).collect();
    let mut wrong = Vec::new();
    for malformed in &all {
        let found = complaints(nodes, malformed);
        if !found.is_empty() {
            let body = malformed.request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let body: String = body.chars().take(200).collect();
            wrong.push(format!("{}\n    sent: {body}\n    {}", malformed.name, found.join("\n    ")));
        }
        alive().unwrap_or_else(|log| panic!("{} ended a server:\n{log}", malformed.name));
    }
    let after = state(nodes, &variables);
    for (path, seen) in &before {
        if seen != &after[path] {
            wrong.push(format!(
                "{path} changed\n    from {}\n    to   {}",
                shortened(&seen.to_string()),
                shortened(&after[path].to_string())
            ));
        }
    }
    let shown = wrong.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(wrong.is_empty(), "{} of {} requests\n\n{shown}\n", wrong.len(), all.len());

    for one in corpus.unbroken(&variables).unwrap_or_else(|error| panic!("{error:#}")) {
        let answer = send(nodes.next(), &one.request).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(answer.status, 200, "{} is no right body: {}", one.name, answer.text());
    }
    println!("{} malformed requests refused", all.len());
}

#[test]
fn every_malformed_request_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(&Options::new(&dir.path().join("data"))).unwrap_or_else(|error| panic!("{error:#}"));
    let nodes = RoundRobin::new(std::slice::from_ref(&server.url), &server.key);
    are_refused(&nodes, 1, || if server.lives() { Ok(()) } else { Err(server.log()) });
}

/// A node that does not lead an object sends its requests on, also those that are refused. What reads a request is the
/// same as in one node, so a part of them will do.
#[test]
fn every_malformed_request_is_refused_by_three_nodes_in_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut dev = Dev::start(&dir.path().join("data")).unwrap_or_else(|error| panic!("{error:#}"));
    let nodes = RoundRobin::new(&dev.urls, &dev.key);
    are_refused(&nodes, PART, || if dev.lives() { Ok(()) } else { Err(dev.log()) });
}

/// Kind of a slow sender.
#[derive(Clone, Copy, Debug)]
enum Slow {
    /// The head, and not one byte of the body.
    Nothing,
    /// Half of the body, and then silence.
    Half,
    /// A byte now and then: it never falls silent, and never ends in time.
    Drips,
}

/// Between two bytes of one who drips.
const DRIP: Duration = Duration::from_millis(100);

/// Returns the received bytes until the server closed.
fn sent_slowly(server: &Server, request: &Request, slow: Slow) -> std::io::Result<String> {
    let address = server.url.strip_prefix("http://").expect("an http:// address");
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let body = request.body.as_deref().unwrap_or_default();
    let mut head = format!("{} {} HTTP/1.1\r\nHost: {address}\r\n", request.method, request.target);
    request.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes())?;
    match slow {
        Slow::Nothing => {}
        Slow::Half => stream.write_all(&body[..body.len() / 2])?,
        Slow::Drips => {
            let mut dripping = stream.try_clone()?;
            let bytes = body[..body.len() - 1].to_vec();
            // Ends when the server closes, or with the body, which lacks its last byte.
            std::thread::spawn(move || {
                for byte in bytes {
                    if dripping.write_all(&[byte]).is_err() {
                        return;
                    }
                    std::thread::sleep(DRIP);
                }
            });
        }
    }
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    // A reset behind the answer is an end as well.
    while let Ok(length @ 1..) = stream.read(&mut part) {
        bytes.extend_from_slice(&part[..length]);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Every operation that takes a body: one that does not come within its time is refused, its connection is closed, and
/// nothing changes.
#[test]
fn slow_bodies_are_cut() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new(&dir.path().join("data"));
    options.settings = ["http.body_seconds_max=1", "http.body_grace_seconds=1"].map(String::from).to_vec();
    let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let nodes = RoundRobin::new(std::slice::from_ref(&server.url), &server.key);
    let variables = seeded(&nodes);
    let before = state(&nodes, &variables);
    let requests = corpus().unbroken(&variables).unwrap_or_else(|error| panic!("{error:#}"));
    let takes_body = |one: &&Malformed| one.request.body.as_ref().is_some_and(|body| body.len() > 1);
    let requests: Vec<&Malformed> = requests.iter().filter(takes_body).collect();
    assert!(requests.len() >= 10, "{} operations take a body", requests.len());
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let each = requests.iter().flat_map(|one| [Slow::Nothing, Slow::Half, Slow::Drips].map(|slow| (one, slow)));
        let sent: Vec<_> = each
            .map(|(one, slow)| {
                let server = &server;
                let sent = scope.spawn(move || {
                    let begun = Instant::now();
                    let text = sent_slowly(server, &one.request, slow).unwrap_or_else(|error| error.to_string());
                    (text, begun.elapsed())
                });
                (one, slow, sent)
            })
            .collect();
        let complaint = |name: &str, slow: Slow, text: &str, took: Duration| {
            let right = text.starts_with("HTTP/1.1 408") && text.contains("\"Message\"") && took < ANSWER_MAX;
            (!right).then(|| format!("{name}, {slow:?}, after {took:?}: {}", shortened(text)))
        };
        let ended = sent.into_iter().map(|(one, slow, sent)| (one, slow, sent.join().expect("a sender")));
        ended.filter_map(|(one, slow, (text, took))| complaint(&one.name, slow, &text, took)).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(state(&nodes, &variables), before);
}

#[test]
fn what_an_answer_lacks_is_seen() {
    let request = Request { method: "GET".into(), target: "/x".into(), ..Request::default() };
    let answer = HttpResponse { status: 404, headers: Vec::new(), body: b"not found".to_vec() };
    assert_eq!(error_complaints(&request, &answer, "").len(), 1);
}
