//! One organization cannot stop the queries of another: with regular expressions that take pattern times text, or with
//! unread exports. On one node and on three, in a short form, and at the size of the original finding in an ignored
//! one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::http::{Exchange, Request, exchange, parse, request_bytes};
use assay_test_api::rows::knock;
use serde_json::{Value, json};

use crate::nodes::{Nodes, counted, held, request};

/// Takes each state of the pattern at each letter of the text, and compiles within its limit.
const HEAVY: &str = "(a{1,50}){1,50}c";
/// Compiles to some megabytes.
const TOO_LARGE: &str = "(a{1,1000}){1,100}c";
const TEXT_BYTES: usize = 2_000;
const EXPORTED_BYTES: usize = 400_000;
/// Queries of an organization that answer at once: what a single key has of the 16 permits.
const OWN_PERMITS_MIN: f64 = 14.0;
/// Time limit of a query, set on the nodes.
const SECONDS: u64 = 5;
const SETTINGS: [(&str, &str); 2] = [("ASSAY_QUERIES_SECONDS_MAX", "5"), ("ASSAY_HTTP_ANSWER_GRACE_SECONDS", "2")];
/// Beyond its time, until a query is answered: a debug build on a machine that does other things, where those before it
/// have their time too.
const LATE_MAX: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(50);
/// Time limit until nothing is left of queries whose clients disconnected.
const GONE_MAX: Duration = Duration::from_secs(10);
/// Time limit until unread exports have ended.
const UNREAD_MAX: Duration = Duration::from_secs(90);

/// Size of the load.
#[derive(Clone, Copy, Debug)]
struct Size {
    rows: usize,
    /// Clients that ask the heavy query, and how long.
    clients: usize,
    lasts: Duration,
    exported_rows: usize,
    exports: usize,
    /// An answer of the other organization comes within this time.
    neighbour_max: Duration,
    health_max: Duration,
    /// Limit of the slowdown of its slowest response against idle nodes, beyond `SLOWER_BY_MAX`.
    slower_max: Option<f64>,
}

const SHORT: Size = Size {
    rows: 1_000,
    clients: 20,
    lasts: Duration::from_secs(10),
    exported_rows: 80,
    exports: 20,
    neighbour_max: Duration::from_secs(10),
    health_max: Duration::from_secs(5),
    slower_max: None,
};
const FULL: Size = Size {
    rows: 4_000,
    clients: 20,
    lasts: Duration::from_secs(60),
    exported_rows: 150,
    exports: 100,
    neighbour_max: Duration::from_secs(5),
    health_max: Duration::from_secs(1),
    slower_max: Some(3.0),
};
/// Margin for turns and a busy machine: load, clients and nodes share its cores.
const SLOWER_BY_MAX: Duration = Duration::from_millis(100);

struct TenantWorld {
    nodes: Nodes,
    /// Logs of the heavy organization, and of its neighbour.
    texts: String,
    exported: String,
    small: String,
    neighbour: String,
}

fn as_other(key: &str, request: Request) -> Request {
    let named = |(name, value): (String, String)| match name.as_str() {
        "authorization" => (name, format!("Bearer {key}")),
        _ => (name, value),
    };
    Request { headers: request.headers.into_iter().map(named).collect(), ..request }
}

impl TenantWorld {
    fn start(count: usize, size: &Size) -> Result<TenantWorld> {
        let nodes = Nodes::start(count, &SETTINGS)?;
        let (texts, exported) = (nodes.project("texts")?, nodes.project("exported")?);
        let text = "a".repeat(TEXT_BYTES);
        for first in (0..size.rows).step_by(250) {
            let row = |n: usize| json!({"id": format!("t{n}"), "input": text});
            nodes.insert(&texts, &(first..size.rows.min(first + 250)).map(row).collect::<Vec<Value>>())?;
        }
        let long = "x".repeat(EXPORTED_BYTES);
        for first in (0..size.exported_rows).step_by(10) {
            let row = |n: usize| json!({"id": format!("e{n}"), "input": long});
            nodes.insert(&exported, &(first..first + 10).map(row).collect::<Vec<Value>>())?;
        }
        let neighbour = nodes.organization("globex")?;
        let project = Request { target: "/v1/project".into(), ..request(&json!({"name": "small"})) };
        let made = TenantWorld::answer(nodes.url(), &as_other(&neighbour, project), LATE_MAX)?;
        let made: Value = serde_json::from_slice(&made.body)?;
        let small = made["id"].as_str().context("an id")?.to_owned();
        let target = format!("/v1/project_logs/{small}/insert");
        let rows = Request { target, ..request(&json!({"events": [{"id": "s", "input": 1}]})) };
        TenantWorld::answer(nodes.url(), &as_other(&neighbour, rows), LATE_MAX)?;
        Ok(TenantWorld { nodes, texts, exported, small, neighbour })
    }

    /// A 200 within a time.
    fn answer(url: &str, request: &Request, within: Duration) -> Result<assay_test_api::http::HttpResponse> {
        let Exchange::Answered(answer) = exchange(url, request, within)? else { anyhow::bail!("closed unanswered") };
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
        Ok(answer)
    }

    fn matching(&self, pattern: &str) -> Request {
        request(&json!({
            "query": format!("select: count(1) as n | from: project_logs('{}') | filter: input ~ '{pattern}'", self.texts)
        }))
    }

    fn export(&self) -> Request {
        let query = format!("select: * | from: project_logs('{}')", self.exported);
        request(&json!({"query": query, "fmt": "jsonl", "disable_limit": true}))
    }

    /// One query of the neighbour: how long it took. Every one is answered.
    fn neighbour(&self, url: &str, size: &Size) -> Result<Duration> {
        let begun = Instant::now();
        let query = json!({"query": format!("select: count(1) as n | from: project_logs('{}')", self.small)});
        let answer = TenantWorld::answer(url, &as_other(&self.neighbour, request(&query)), size.neighbour_max)
            .context("the other organization's query")?;
        ensure!(answer.text().contains("\"n\":1"), "{}", answer.text());
        let took = begun.elapsed();
        ensure!(took < size.neighbour_max, "the other organization's query took {took:?}");
        let asked = Instant::now();
        let (status, _) = knock(url, "/healthz")?;
        let health = asked.elapsed();
        ensure!(status == 200 && health < size.health_max, "/healthz: {status} after {health:?}");
        Ok(took)
    }

    /// Runs queries of the neighbour on all nodes in turn until it is stopped; returns the duration of each.
    fn neighbour_until(&self, stop: &AtomicBool, size: &Size) -> Result<Vec<Duration>> {
        let mut took = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            took.push(self.neighbour(self.nodes.url(), size)?);
            std::thread::sleep(POLL);
        }
        Ok(took)
    }

    /// The largest value of a metric of any node.
    fn largest(&self, name: &str) -> Result<f64> {
        self.nodes.dev.urls.iter().try_fold(0.0, |most, url| Ok(counted(url, name)?.max(most)))
    }

    fn until_none(&self, name: &str, within: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            let now = self.largest(name)?;
            if now == 0.0 {
                println!("{name} is 0 after {:?}", begun.elapsed());
                return Ok(());
            }
            ensure!(begun.elapsed() < within, "{name} is {now} after {within:?}");
            std::thread::sleep(POLL);
        }
    }

    /// Runs the heavy query until it is stopped; returns how often it ran, and how often it reached its time limit.
    fn heavy_until(&self, stop: &AtomicBool) -> Result<(usize, usize)> {
        let (mut all, mut late) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let exchanged = exchange(self.nodes.url(), &self.matching(HEAVY), Duration::from_secs(SECONDS) + LATE_MAX)?;
            let Exchange::Answered(answer) = exchanged else { anyhow::bail!("closed unanswered") };
            let took = begun.elapsed();
            // Short enough to be answered on a fast machine, and never ended by the limit of the request.
            ensure!([200, 504].contains(&answer.status), "{} after {took:?}: {}", answer.status, answer.text());
            all += 1;
            late += usize::from(answer.status == 504);
        }
        Ok((all, late))
    }
}

fn p99(took: &[Duration]) -> Result<Duration> {
    let mut took = took.to_vec();
    took.sort_unstable();
    took.get(took.len().saturating_sub(1) * 99 / 100).copied().context("answers")
}

fn not_slower(calm: &[Duration], stormy: &[Duration], size: &Size) -> Result<()> {
    let (calm, stormy) = (p99(calm)?, p99(stormy)?);
    println!("p99 of the other organization: {calm:?} on idle nodes, {stormy:?} beside the load");
    let Some(times) = size.slower_max else { return Ok(()) };
    ensure!(stormy <= calm.mul_f64(times) + SLOWER_BY_MAX, "p99 went from {calm:?} to {stormy:?}");
    Ok(())
}

fn calm(world: &TenantWorld, size: &Size) -> Result<Vec<Duration>> {
    (0..20).map(|_| world.neighbour(world.nodes.url(), size)).collect()
}

fn patterns_end_at_their_limits(world: &TenantWorld, size: &Size) -> Result<()> {
    let refused = exchange(world.nodes.url(), &world.matching(TOO_LARGE), LATE_MAX)?;
    let Exchange::Answered(refused) = refused else { anyhow::bail!("closed unanswered") };
    let text = refused.text();
    ensure!(refused.status == 400 && text.contains("262144 bytes (256 KiB)"), "{}: {text}", refused.status);

    let calm = calm(world, size)?;
    let (stop, most) = (AtomicBool::new(false), Mutex::new(0.0_f64));
    let stormy = std::thread::scope(|scope| -> Result<Vec<Duration>> {
        let heavy: Vec<_> = (0..size.clients).map(|_| scope.spawn(|| world.heavy_until(&stop))).collect();
        let neighbour = scope.spawn(|| world.neighbour_until(&stop, size));
        let begun = Instant::now();
        while begun.elapsed() < size.lasts && !neighbour.is_finished() {
            let running = world.largest("assay_queries_running").unwrap_or_default();
            let mut most = most.lock().expect("no thread panics");
            *most = most.max(running);
            drop(most);
            std::thread::sleep(POLL);
        }
        stop.store(true, Ordering::Relaxed);
        let took = neighbour.join().expect("no thread panics")?;
        let (mut all, mut late) = (0, 0);
        for client in heavy {
            let (asked, ended) = client.join().expect("no thread panics")?;
            (all, late) = (all + asked, late + ended);
        }
        println!("{all} heavy queries, {late} ended by their time; {} of the neighbour", took.len());
        ensure!(late > 0, "none of the queries was heavy: nothing is shown");
        Ok(took)
    })?;
    not_slower(&calm, &stormy, size)?;
    let most = *most.lock().expect("no thread panics");
    if world.nodes.dev.urls.len() == 1 {
        ensure!(most >= OWN_PERMITS_MIN, "a single key had {most} of 16 permits");
    }
    Ok(())
}

fn clients_that_leave_take_their_queries_along(world: &TenantWorld, size: &Size) -> Result<()> {
    let mut gone = Vec::new();
    for _ in 0..size.clients {
        let url = world.nodes.url();
        let address = url.strip_prefix("http://").context("an address")?;
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(&request_bytes(address, &world.matching(HEAVY)))?;
        gone.push(stream);
    }
    let begun = Instant::now();
    while world.largest("assay_queries_running")? < 1.0 {
        ensure!(begun.elapsed() < GONE_MAX, "none of them runs");
        std::thread::sleep(POLL);
    }
    std::thread::sleep(Duration::from_millis(300));
    drop(gone);
    // On the node that was asked, and on those that have the rows.
    world.until_none("assay_queries_running", GONE_MAX)?;
    world.until_none("assay_budget_held{budget=\"queries.threads\"}", GONE_MAX)
}

fn exports_that_nobody_reads_end(world: &TenantWorld, size: &Size) -> Result<()> {
    const LEFT: &str = "assay_http_slow_readers_total ";
    let calm = calm(world, size)?;
    let left = || -> Result<f64> { world.nodes.dev.urls.iter().map(|url| counted(url, LEFT)).sum() };
    let (stop, before) = (AtomicBool::new(false), left()?);
    let mut unread = Vec::new();
    for _ in 0..size.exports {
        let url = world.nodes.url();
        let address = url.strip_prefix("http://").context("an address")?;
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(&request_bytes(address, &world.export()))?;
        unread.push(stream);
    }
    let stormy = std::thread::scope(|scope| -> Result<Vec<Duration>> {
        let neighbour = scope.spawn(|| world.neighbour_until(&stop, size));
        let ended = until_exports_ended(world, size, || Ok(left()? - before));
        stop.store(true, Ordering::Relaxed);
        let took = neighbour.join().expect("no thread panics")?;
        ended.map(|()| took)
    });
    not_slower(&calm, &stormy?, size)?;
    drop(unread);
    whoever_reads_has_all(world, size)
}

/// Waits until no response is in progress on any node. Those with a slow first part were refused, the others were
/// abandoned.
fn until_exports_ended(world: &TenantWorld, size: &Size, left: impl Fn() -> Result<f64>) -> Result<()> {
    let begun = Instant::now();
    loop {
        let mut under_way = world.largest("assay_queries_running")?;
        for name in ["assay_budget_held", "assay_budget_waiting"] {
            under_way += world.largest(&format!("{name}{{budget=\"http.answers_bytes_max\"}}"))?;
        }
        let left = left()?;
        if under_way == 0.0 && left > 0.0 {
            println!("{left} of {} exports were left, the last after {:?}", size.exports, begun.elapsed());
            return Ok(());
        }
        ensure!(begun.elapsed() < UNREAD_MAX, "{left} of {} unread exports ended in {UNREAD_MAX:?}", size.exports);
        std::thread::sleep(POLL);
    }
}

/// Checks that a slow reader gets everything, as long as it keeps the minimum rate.
fn whoever_reads_has_all(world: &TenantWorld, size: &Size) -> Result<()> {
    let address = world.nodes.url().strip_prefix("http://").context("an address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LATE_MAX))?;
    stream.write_all(&request_bytes(address, &world.export()))?;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 1 << 20]);
    loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..read]);
        std::thread::sleep(Duration::from_millis(20));
    }
    let answer = parse(&bytes)?.context("a whole answer")?;
    let lines = answer.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    ensure!(answer.status == 200 && lines == size.exported_rows, "{}: {lines} rows", answer.status);
    Ok(())
}

fn all(count: usize, size: &Size) {
    let world = TenantWorld::start(count, size).unwrap_or_else(|error| panic!("{error:#}"));
    let result = patterns_end_at_their_limits(&world, size)
        .context("patterns")
        .and_then(|()| clients_that_leave_take_their_queries_along(&world, size).context("clients that leave"))
        .and_then(|()| exports_that_nobody_reads_end(&world, size).context("exports that nobody reads"));
    held(&world.nodes, result);
}

#[test]
fn one_organization_cannot_stop_the_queries_of_another_on_one_node() {
    all(1, &SHORT);
}

#[test]
fn one_organization_cannot_stop_the_queries_of_another_on_three_nodes() {
    all(3, &SHORT);
}

#[test]
#[ignore = "minutes, on a release build: .ci/run runs it"]
fn full_size_on_one_node() {
    all(1, &FULL);
}

#[test]
#[ignore = "minutes, on a release build: .ci/run runs it"]
fn full_size_on_three_nodes() {
    all(3, &FULL);
}
