//! A small server that speaks Langfuse's public API of version 3, with limits on its rate.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub const PUBLIC_KEY: &str = "pk-lf-test";
pub const SECRET_KEY: &str = "sk-lf-test";

const TRACES: usize = 300;
const OBSERVATIONS: usize = 4;
const ITEMS: usize = 20;
const RUN_ITEMS: usize = 10;
const VERSIONS: usize = 3;
/// Every so many requests are refused with 429.
const REFUSED_EVERY: usize = 9;
/// Every so many refusals ask for a pause of a second.
const LONG_EVERY: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Clocks of two processes and their rounding.
const TOLERANCE: Duration = Duration::from_millis(50);

/// Server until the test is over.
pub struct LangfuseServer {
    pub url: String,
    shared: Arc<SharedCounts>,
}

#[derive(Default)]
struct SharedCounts {
    requests: AtomicUsize,
    early: AtomicUsize,
    writes: AtomicUsize,
    /// Request that was refused, and the end of the pause that it was asked for.
    pause: Mutex<Option<(String, Instant)>>,
}

impl LangfuseServer {
    pub fn start() -> LangfuseServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(SharedCounts::default());
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                thread::spawn(move || shared.serve(stream));
            }
        });
        LangfuseServer { url, shared }
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Requests that came again before the end of their pause.
    pub fn early_requests(&self) -> usize {
        self.shared.early.load(Ordering::Relaxed)
    }

    /// Forgets the pause that a process was asked for.
    pub fn forget_pause(&self) {
        *self.shared.pause.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Requests that would change something.
    pub fn writes(&self) -> usize {
        self.shared.writes.load(Ordering::Relaxed)
    }

    /// Counts that an import of everything has.
    pub fn counts(&self) -> Value {
        json!({
            "spans": TRACES * (1 + OBSERVATIONS),
            "traces": TRACES,
            "scores": TRACES * 2,
            "scores_in_metadata": TRACES,
            "estimated_cost": (TRACES * 2) as f64 * 0.001,
            "experiments": 1,
            "experiment_spans": RUN_ITEMS * (1 + OBSERVATIONS),
            "experiment_scores": RUN_ITEMS,
            "datasets": 1,
            "dataset_rows": ITEMS,
            "prompt_versions": VERSIONS,
            "duplicates": 0,
        })
    }
}

impl SharedCounts {
    fn serve(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
            match stream.read(&mut part) {
                Ok(read) if read > 0 => bytes.extend_from_slice(&part[..read]),
                _ => return,
            }
        }
        let head = String::from_utf8_lossy(&bytes).into_owned();
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (status, header, body) = self.answer(method, target, &head);
        let answer =
            format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n{header}\r\n{body}", body.len());
        let _ = stream.write_all(answer.as_bytes()); // who was killed does not want it
    }

    fn answer(&self, method: &str, target: &str, head: &str) -> (u16, String, String) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let credentials = STANDARD.encode(format!("{PUBLIC_KEY}:{SECRET_KEY}"));
        if !head.contains(&format!("Basic {credentials}")) {
            return (401, String::new(), "{}".to_owned());
        }
        if method != "GET" {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        let is_again = pause.as_ref().is_some_and(|(refused, _)| refused.as_str() == target);
        if let Some((_, until)) = pause.take().filter(|_| is_again)
            && Instant::now() + TOLERANCE < until
        {
            self.early.fetch_add(1, Ordering::Relaxed);
        }
        if number.is_multiple_of(REFUSED_EVERY) {
            let is_long = number.is_multiple_of(REFUSED_EVERY * LONG_EVERY);
            let seconds = u64::from(is_long);
            *pause = is_long.then(|| (target.to_owned(), Instant::now() + PAUSE));
            return (429, format!("Retry-After: {seconds}\r\n"), "{\"message\": \"slow down\"}".to_owned());
        }
        match content(target) {
            Some(body) => (200, "Content-Type: application/json\r\n".to_owned(), body.to_string()),
            None => (404, String::new(), "{}".to_owned()),
        }
    }
}

fn content(target: &str) -> Option<Value> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let value = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let page: usize = value("page").and_then(|page| page.parse().ok()).unwrap_or(1);
    let limit: usize = value("limit").and_then(|limit| limit.parse().ok()).unwrap_or(50);
    let listed = |all: Vec<Value>| {
        let total = all.len();
        let data: Vec<Value> = all.into_iter().skip((page - 1) * limit).take(limit).collect();
        let pages = total.div_ceil(limit);
        json!({"data": data, "meta": {"page": page, "limit": limit, "totalItems": total, "totalPages": pages}})
    };
    let path = path.strip_prefix("/api/public/")?;
    Some(match path {
        "health" => json!({"status": "OK", "version": "3.163.0"}),
        "traces" => listed((0..TRACES).map(trace).collect()),
        "observations" => listed((0..TRACES).flat_map(observations).collect()),
        "v2/scores" => listed(scores()),
        "v2/datasets" => {
            listed(vec![json!({"id": "dataset-1", "name": "questions", "description": "all", "metadata": {}})])
        }
        "dataset-items" => listed((0..ITEMS).map(item).collect()),
        "datasets/questions/runs" => listed(vec![json!({"id": "run-1", "name": "first", "datasetId": "dataset-1"})]),
        "dataset-run-items" => listed((0..RUN_ITEMS).map(run_item).collect()),
        "v2/prompts" => {
            let versions: Vec<usize> = (1..=VERSIONS).collect();
            listed(vec![json!({"name": "greeting", "versions": versions, "labels": ["production", "latest"]})])
        }
        "v2/prompts/greeting" => prompt(value("version")?.parse().ok()?),
        "comments" => listed(vec![json!({"id": "comment-1"})]),
        "score-configs" | "annotation-queues" => listed(Vec::new()),
        path => match path.split_once('/')? {
            ("dataset-items", id) => item(id.strip_prefix("item-")?.parse().ok()?),
            ("traces", id) => whole_trace(id.strip_prefix("trace-")?.parse().ok()?),
            _ => return None,
        },
    })
}

fn time(number: usize, second: usize) -> String {
    format!("2026-03-01T{:02}:{:02}:{second:02}.000Z", number / 60, number % 60)
}

fn trace(number: usize) -> Value {
    json!({"id": format!("trace-{number}"), "timestamp": time(number, 0), "name": "chat",
        "input": {"question": number}, "output": {"answer": number}, "userId": format!("user-{number}"),
        "sessionId": format!("session-{}", number / 3), "tags": ["moved"], "metadata": {"team": "a"},
        "release": null, "version": null, "public": false, "environment": "default", "latency": 5.0,
        "totalCost": 0.002})
}

fn observations(number: usize) -> Vec<Value> {
    let observation = |index: usize| {
        let parent = (index > 0).then(|| format!("observation-{number}-0"));
        let is_model = index >= 2;
        let usage = json!({"input": 10, "output": 2, "total": 12});
        json!({"id": format!("observation-{number}-{index}"), "traceId": format!("trace-{number}"),
            "parentObservationId": parent, "type": if is_model { "GENERATION" } else { "SPAN" },
            "name": format!("step {index}"), "startTime": time(number, index), "endTime": time(number, index + 1),
            "input": "in", "output": "out", "level": "DEFAULT", "model": is_model.then_some("gpt-4o"),
            "usageDetails": is_model.then_some(usage), "costDetails": is_model.then(|| json!({"total": 0.001}))})
    };
    (0..OBSERVATIONS).map(observation).collect()
}

/// Two scores of each trace that fit, one that does not, and one of a session.
fn scores() -> Vec<Value> {
    let of_trace = |number: usize| {
        let trace = format!("trace-{number}");
        let score = |kind: &str, observation: Option<String>, value: f64, data: &str| {
            json!({"id": format!("score-{kind}-{number}"), "traceId": trace, "observationId": observation,
                "name": kind, "value": value, "dataType": data, "source": "API", "comment": null})
        };
        [
            score("helpful", None, 1.0, "BOOLEAN"),
            score("exact", Some(format!("observation-{number}-2")), 0.25, "NUMERIC"),
            score("rating", None, 4.0, "NUMERIC"),
        ]
    };
    let session =
        json!({"id": "score-session", "sessionId": "session-1", "name": "s", "value": 1, "dataType": "NUMERIC"});
    (0..TRACES).flat_map(of_trace).chain([session]).collect()
}

fn item(number: usize) -> Value {
    json!({"id": format!("item-{number}"), "status": "ACTIVE", "input": {"question": number},
        "expectedOutput": {"answer": number}, "metadata": null, "datasetName": "questions",
        "createdAt": time(number, 0)})
}

fn run_item(number: usize) -> Value {
    json!({"id": format!("run-item-{number}"), "datasetItemId": format!("item-{number}"),
        "traceId": format!("trace-{}", 100 + number), "datasetRunName": "first"})
}

fn whole_trace(number: usize) -> Value {
    let mut whole = trace(number);
    whole["observations"] = Value::Array(observations(number));
    whole["scores"] = json!([{"id": format!("score-run-{number}"), "traceId": format!("trace-{number}"),
        "name": "correct", "value": 1, "dataType": "NUMERIC"}]);
    whole
}

fn prompt(version: usize) -> Value {
    let labels: &[&str] = match version {
        2 => &["production"],
        VERSIONS => &["latest"],
        _ => &[],
    };
    json!({"name": "greeting", "version": version, "type": "text", "prompt": format!("Hello {{{{name}}}}, {version}"),
        "labels": labels, "tags": [], "config": {"model": "gpt-4o"}})
}
