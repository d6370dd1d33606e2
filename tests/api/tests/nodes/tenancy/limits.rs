//! A request limit holds for three nodes together: a client that sends three times as much, to all of them, gets its
//! limit; the rest is refused with a retry time, and other clients are not affected.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::http::{Request, send};
use assay_test_api::process::run;

/// Limit of an organization on all nodes together. The burst is as much as in a second.
const PER_SECOND: u32 = 60;
const RULES: &str = "[{endpoint = \"/ping\", per = \"organization\", requests = 60, seconds = 1}]";
const OTHER: &str = "globex";
const OTHER_PER_SECOND: u32 = 30;
/// Rate of requests as a multiple of the limit.
const TIMES: u32 = 3;
/// Callers at each node; each waits for its response before the next request.
const CALLERS: u32 = 6;
/// Time that is not counted at first: the burst is used up, and nodes learn the demand.
const WARM: Duration = Duration::from_secs(3);
const COUNTED: Duration = Duration::from_secs(12);
/// Tolerance as a share of the limit, either way.
const WITHIN: f64 = 0.1;
/// The slowest requests of others may be this much slower than while the busy one stays at its limit.
const SLOWER_MAX: f64 = 1.2;
/// Three nodes and their callers share the processors of one machine, and a request waits for its turn for up to 50 ms.
const SLOWER_BY_MAX: Duration = Duration::from_millis(50);
/// Other tests that run at the same time make requests slower as well, so the comparison may be repeated. A limit that
/// costs others something costs it every time.
const COMPARISONS: usize = 3;

/// One response: the time of its request since the start, its duration, and whether it was admitted.
#[derive(Clone, Copy, Debug)]
struct TimedCall {
    at: Duration,
    took: Duration,
    let_in: bool,
}

/// Requests that the only rule refused.
const REFUSED: &str = "assay_rate_refused_total{rule=\"1\"";

/// Caller, with its rate at each node.
struct Stream<'a> {
    key: &'a str,
    per_second: u32,
    callers: u32,
}

fn ask(url: &str, key: &str) -> Result<bool> {
    let headers = vec![("authorization".into(), format!("Bearer {key}"))];
    let answer = send(url, &Request { method: "GET".into(), target: "/ping".into(), headers, ..Request::default() })?;
    if answer.status == 200 {
        return Ok(true);
    }
    let text = answer.text();
    ensure!(answer.status == 429, "{}: {text}", answer.status);
    let after = answer.header("retry-after").with_context(|| format!("429 without Retry-After: {text}"))?;
    let seconds: u64 = after.parse().with_context(|| format!("Retry-After: {after}"))?;
    ensure!(seconds >= 1, "Retry-After: {after}");
    ensure!(text.contains("TooManyRequestsError") && text.contains("`/ping`"), "it does not name its rule: {text}");
    Ok(false)
}

/// Runs one caller: it sends at its times, and skips those that passed while it waited.
fn calls(url: &str, stream: &Stream<'_>, number: u32, begun: Instant, lasts: Duration) -> Result<Vec<TimedCall>> {
    let every = Duration::from_secs(u64::from(stream.callers)) / stream.per_second;
    let mut seen = Vec::new();
    let mut next = every * number / stream.callers;
    while next < lasts {
        std::thread::sleep((begun + next).saturating_duration_since(Instant::now()));
        let at = begun.elapsed();
        let let_in = ask(url, stream.key)?;
        let took = begun.elapsed() - at;
        seen.push(TimedCall { at, took, let_in });
        while next <= begun.elapsed() {
            next += every;
        }
    }
    Ok(seen)
}

/// All streams at all nodes at once; what each saw.
fn stream(dev: &Dev, streams: &[Stream<'_>], lasts: Duration) -> Result<Vec<Vec<TimedCall>>> {
    let seen: Vec<Mutex<Vec<TimedCall>>> = streams.iter().map(|_| Mutex::default()).collect();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let mut callers = Vec::new();
        for (stream, seen) in streams.iter().zip(&seen) {
            for url in &dev.urls {
                callers.extend((0..stream.callers).map(|number| {
                    scope.spawn(move || -> Result<()> {
                        let own = calls(url, stream, number, begun, lasts)?;
                        seen.lock().expect("no caller panics").extend(own);
                        Ok(())
                    })
                }));
            }
        }
        callers.into_iter().try_for_each(|caller| caller.join().expect("no caller panics"))
    })?;
    Ok(seen.into_iter().map(|seen| seen.into_inner().expect("no caller panics")).collect())
}

/// Returns the requests in the counted time.
fn counted(seen: &[TimedCall]) -> Vec<TimedCall> {
    seen.iter().copied().filter(|seen| (WARM..WARM + COUNTED).contains(&seen.at)).collect()
}

fn p99(seen: &[TimedCall]) -> Result<Duration> {
    let mut took: Vec<Duration> = seen.iter().map(|seen| seen.took).collect();
    took.sort_unstable();
    took.get(took.len() * 99 / 100).copied().context("requests")
}

/// Sends a multiple of the busy organization's limit beside the other one. Returns how many of its requests were
/// admitted and refused, and the 99th percentile of the other's.
fn beside(dev: &Dev, other: &str, times: f64) -> Result<(usize, usize, Duration)> {
    let at_each = |per_second: f64| (per_second / NODES as f64).round() as u32;
    let busy = Stream { key: &dev.key, per_second: at_each(f64::from(PER_SECOND) * times), callers: CALLERS };
    let calm = Stream { key: other, per_second: at_each(f64::from(OTHER_PER_SECOND)), callers: 2 };
    let seen = stream(dev, &[busy, calm], WARM + COUNTED)?;
    let (busy, calm) = (counted(&seen[0]), counted(&seen[1]));
    ensure!(calm.iter().all(|seen| seen.let_in), "the other organization was refused, far below its limit");
    let let_in = busy.iter().filter(|seen| seen.let_in).count();
    Ok((let_in, busy.len() - let_in, p99(&calm)?))
}

/// Sum of a counter over all nodes.
fn metric(dev: &Dev, name: &str) -> Result<f64> {
    dev.urls.iter().try_fold(0.0, |sum, url| {
        let request = Request { method: "GET".into(), target: "/metrics".into(), ..Request::default() };
        let text = send(url, &request)?.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("{name} at {url}"))?;
        Ok(sum + line.rsplit(' ').next().context("a value")?.parse::<f64>()?)
    })
}

fn holds(dev: &Dev, data: &Path) -> Result<()> {
    let node = data.join("node-1");
    let node = node.to_str().context("a path that is text")?;
    let words = ["admin", "create-organization", OTHER, "--owner", "owner@globex.example", "--data-dir", node];
    let made = run(&words, &[], "")?.json()?;
    let other = made["api_key"].as_str().context("a key")?;

    let mut comparisons = Vec::new();
    while comparisons.len() < COMPARISONS {
        let (calm, stormy) = compare(dev, other)?;
        if stormy <= calm.mul_f64(SLOWER_MAX) + SLOWER_BY_MAX {
            return Ok(());
        }
        comparisons.push((calm, stormy));
    }
    bail!("p99 of the other organization, each time before and after the busy one exceeds its limit: {comparisons:?}")
}

/// Returns the 99th percentile of the other organization's requests while the busy one stays below its limit, and while
/// it sends [`TIMES`] as much.
fn compare(dev: &Dev, other: &str) -> Result<(Duration, Duration)> {
    let told_before = metric(dev, REFUSED).unwrap_or_default(); // the metric begins with the first refusal
    let (_, refused, calm) = beside(dev, other, 0.8)?;
    println!("at 0.8 of the limit: {refused} refused; p99 of the other organization {calm:?}");
    ensure!(refused == 0, "{refused} requests were refused below the limit");
    let (let_in, refused, stormy) = beside(dev, other, f64::from(TIMES))?;
    let limit = f64::from(PER_SECOND) * COUNTED.as_secs_f64();
    let part = let_in as f64 / limit;
    println!(
        "at {TIMES} times: {let_in} of {limit} let in ({part:.3}), {refused} refused; p99 of the other {stormy:?}"
    );
    let asks = metric(dev, "assay_rate_asks_total ")?;
    let alone = metric(dev, "assay_rate_alone_total ")?;
    println!("{asks} asks between nodes, {alone} requests judged by a node's share");
    let came = (let_in + refused) as f64 / limit;
    ensure!(came > 2.0, "only {came:.2} times the limit came: nothing is shown");
    ensure!((1.0 - WITHIN..=1.0 + WITHIN).contains(&part), "{let_in} were let in where the limit is {limit}");
    let told = metric(dev, REFUSED)? - told_before;
    ensure!(told >= refused as f64, "{refused} refusals were seen and {told} counted");
    Ok((calm, stormy))
}

#[test]
fn a_limit_holds_for_all_nodes_together_and_costs_nobody_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, &[("ASSAY_LIMITS_RATES", RULES)]).unwrap_or_else(|error| panic!("{error:#}"));
    holds(&dev, &data).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
}
