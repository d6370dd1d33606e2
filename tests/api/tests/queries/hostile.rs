//! Hostile queries: each is answered or refused with a reason, others are answered meanwhile, and the process stays
//! within its memory.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_test_api::http::{Exchange, HttpResponse, exchange};
use serde_json::{Value, json};

use crate::nodes::{Nodes, SEALS, held, insert, request};

/// Small budget for all queries, so that violations are visible: 320 MiB, and 64 each.
const SETTINGS: [(&str, &str); 2] =
    [("ASSAY_QUERIES_MEMORY_BYTES_MAX", "335544320"), ("ASSAY_QUERIES_QUERY_BYTES_MAX", "67108864")];
/// Resident bytes that the process may have gained at the worst moment: those of queries and a fifth more, for requests
/// and answers on their way, and what the allocator keeps.
const GAINED_BYTES_MAX: u64 = (320 << 20) / 5 * 6;
/// Each hostile query has so long.
const SECONDS: u64 = 1;
/// Within its seconds, and what a debug build takes to notice.
const LATE_MAX: Duration = Duration::from_secs(10);
/// A simple query of another connection is answered by then, on a machine that does other things.
const SIMPLE_MAX: Duration = Duration::from_secs(10);
const SIMPLE_PAUSE: Duration = Duration::from_millis(50);
const AT_ONCE: usize = 200;
const LONG_ROWS: usize = 200;
const LONG_BYTES: usize = 20_000;
const IN_LIST: usize = 10_000;
/// The deepest that is read.
const DEPTH: usize = 255;

/// Nodes and objects of the test.
struct HostileWorld {
    nodes: Nodes,
    long: String,
    small: String,
}

impl HostileWorld {
    fn start(settings: &[(&str, &str)]) -> Result<HostileWorld> {
        let nodes = Nodes::start(1, settings)?;
        let (long, small) = (nodes.project("long")?, nodes.project("small")?);
        let text = "a".repeat(LONG_BYTES);
        let numbers: Vec<usize> = (0..100).collect();
        let row = |n: usize| json!({"id": format!("long-{n}"), "input": text, "output": {"big": numbers, "n": n}});
        for first in (0..LONG_ROWS).step_by(50) {
            nodes.insert(&long, &(first..first + 50).map(row).collect::<Vec<Value>>())?;
        }
        nodes.insert(&small, &[json!({"id": "small", "input": 1})])?;
        Ok(HostileWorld { nodes, long, small })
    }

    fn url(&self) -> &str {
        &self.nodes.dev.urls[0]
    }

    fn simple(&self) -> Value {
        json!({"query": format!("SELECT count(1) AS n FROM project_logs('{}')", self.small)})
    }

    fn ask(&self, body: &Value) -> Result<HttpResponse> {
        match exchange(self.url(), &request(body), Duration::from_secs(SECONDS) + LATE_MAX)? {
            Exchange::Answered(answer) => Ok(answer),
            Exchange::Closed => bail!("closed without an answer"),
        }
    }

    /// A field of the process' status, in bytes.
    fn memory(&self, field: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.nodes.dev.processes()[0]))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).context("a field")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib << 10)
    }

    /// Runs simple queries until it is stopped; returns the longest duration and their number.
    fn simple_until(&self, stop: &AtomicBool, may_be_refused: bool) -> Result<(Duration, usize)> {
        let (mut longest, mut count) = (Duration::ZERO, 0);
        while !stop.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let answer = self.ask(&self.simple())?;
            let took = begun.elapsed();
            longest = longest.max(took);
            count += 1;
            let fine = answer.status == 200 || may_be_refused && answer.status == 429;
            ensure!(fine, "a simple query meanwhile: {}: {}", answer.status, answer.text());
            ensure!(took < SIMPLE_MAX, "a simple query took {took:?} meanwhile");
            std::thread::sleep(SIMPLE_PAUSE);
        }
        Ok((longest, count))
    }
}

/// A deeper tree would hurt who makes it.
const TREE_DEPTH: usize = 1_000;

/// Allowed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    /// An answer.
    Answer,
    /// 400.
    Refuse,
    /// An answer, or a refusal with a reason: too much, too late, invalid.
    Either,
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Long lists and patterns.
fn heavy(long: &str) -> Vec<(String, May)> {
    let from = format!("project_logs('{long}')");
    let list: Vec<String> = (0..IN_LIST).map(|n| format!("'long-{n}'")).collect();
    let counted = |filter: &str| format!("SELECT count(1) AS n FROM {from} WHERE {filter}");
    vec![
        (counted(&format!("id IN ({})", list.join(", "))), May::Answer),
        (counted(&format!("id NOT IN ({})", list.join(", "))), May::Answer),
        (counted(&list.iter().map(|id| format!("id = {id}")).collect::<Vec<_>>().join(" OR ")), May::Either),
        (counted("input LIKE '%a%a%a%a%a%a%a%a%a%a%a%b'"), May::Either),
        (counted("input ILIKE '%_a_%_a_%_a_%_a_%B%'"), May::Either),
        (counted(&format!("input LIKE '{}b'", "%a".repeat(2_000))), May::Either),
        (counted("input ~ '(a+)+(a*)*b$'"), May::Either),
        (counted("input ~* '^(.*)(.*)(.*)(.*)x.{1,500}y'"), May::Either),
        (counted("input ~ '((a{1000}){1000}){1000}'"), May::Either),
        (format!("SELECT input || input || input AS x FROM {from}"), May::Either),
        (format!("infer: * | from: {from}"), May::Either),
    ]
}

/// Queries whose single rows cost much: `replace` of a text by itself is as long as its square.
fn costly(long: &str) -> Vec<(String, May)> {
    let from = format!("project_logs('{long}')");
    let counted = |filter: &str| format!("SELECT count(1) AS n FROM {from} WHERE {filter}");
    let product = |times: usize| {
        let each: Vec<String> = (0..times).map(|n| format!("output.big as (v{n})")).collect();
        format!("from: {from} | unpivot: {}", each.join(", "))
    };
    vec![
        (format!("{} | measures: count(1) as n", product(2)), May::Either),
        (format!("{} | measures: count(1) as n", product(4)), May::Either),
        (format!("{} | dimensions: v0, v1, v2 | measures: count(1) as n", product(3)), May::Either),
        (format!("{} | select: id, input, v0, v1, v2 | sort: v2, v1, v0", product(3)), May::Either),
        (format!("{} | select: id, input | limit: 10000", product(2)), May::Either),
        (format!("{} | measures: array_agg(input) as a", product(2)), May::Either),
        (format!("{} | measures: string_agg(input, '-') as a, count_distinct(v0) as d", product(1)), May::Either),
        (format!("{} | dimensions: id, v0, v1 as x | measures: count(1) as n | pivot: n", product(2)), May::Either),
        (counted("levenshtein(input, concat(input, 'b')) > 3"), May::Either),
        (counted("len(replace(replace(input, 'a', input), 'a', input)) > 3"), May::Either),
        (format!("SELECT similarity(input, upper(input)) AS s FROM {from} GROUP BY 1"), May::Either),
    ]
}

/// Depth and size of what is read.
fn deep(long: &str) -> Vec<(Value, May)> {
    let from = format!("project_logs('{long}')");
    let of = |expr: String| json!(format!("SELECT {expr} AS x FROM {from} LIMIT 1"));
    let limit = |limit: &str| json!(format!("SELECT id FROM {from} LIMIT {limit}"));
    let tree = |depth: usize| {
        let node = |inner: Value, _| json!({"op": "not", "expr": inner});
        let filter = (0..depth).fold(json!({"op": "literal", "value": true}), node);
        json!({
            "select": [{"op": "star"}], "limit": 1, "filter": filter,
            "from": {"op": "function", "name": {"op": "ident", "name": ["project_logs"]},
                     "args": [{"op": "literal", "value": long}]},
        })
    };
    let mut all = vec![
        (limit("9223372036854775807"), May::Either),
        (limit("18446744073709551616"), May::Either),
        (limit("1e300"), May::Refuse),
        (limit("-1"), May::Refuse),
        (json!("("), May::Refuse),
        (json!("x".repeat(1 << 20)), May::Refuse),
    ];
    for depth in [100, DEPTH, DEPTH + 1, 1_000, 20_000] {
        let may = if depth < DEPTH {
            May::Answer
        } else if depth > DEPTH + 1 {
            May::Refuse
        } else {
            May::Either
        };
        all.push((of(nested("(", "1", ")", depth)), if depth > DEPTH { May::Either } else { may }));
        all.push((of(nested("[", "1", "]", depth)), May::Either));
        all.push((of(nested("abs(", "1", ")", depth)), may));
        all.push((of(nested("case when true then ", "1", " end", depth)), may));
        all.push((of(nested("{\"a\":", "1", "}", depth)), May::Either));
        all.push((of(nested("not ", "true", "", depth)), May::Either));
        all.push((of(nested("- ", "1", "", depth)), May::Either));
        all.push((of(nested("true ? 1 : ", "1", "", depth)), May::Either));
        all.push((of(nested("1 + ", "1", "", depth)), May::Either));
        all.push((of(format!("metadata{}", ".a".repeat(depth))), May::Either));
        all.push((json!(nested("SELECT * FROM (", &format!("SELECT id FROM {from}"), ")", depth)), May::Refuse));
        if depth <= TREE_DEPTH {
            all.push((tree(depth), May::Either));
        }
    }
    all
}

/// Returns the defect of the response to a hostile query.
fn wrong(answer: &Result<HttpResponse>, may: May, took: Duration) -> Option<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Some(format!("{error:#}")),
    };
    let refused = matches!(answer.status, 400 | 413);
    let fine = match may {
        May::Answer => answer.status == 200,
        May::Refuse => refused,
        May::Either => answer.status == 200 || refused || [429, 504].contains(&answer.status),
    };
    let text: String = answer.text().chars().take(300).collect();
    let told = answer.status == 200 || answer.text().contains("\"Message\"");
    if !fine || !told {
        return Some(format!("{}: {text}", answer.status));
    }
    (took > Duration::from_secs(SECONDS) + LATE_MAX).then(|| format!("after {took:?}"))
}

fn shown(query: &Value) -> String {
    query.to_string().chars().take(160).collect()
}

fn each_is_answered_or_refused(world: &HostileWorld, queries: Vec<(Value, May)>) -> Result<()> {
    let (mut all, mut count) = (Vec::new(), 0);
    for (query, may) in queries {
        let begun = Instant::now();
        let answer = world.ask(&json!({"query": query, "query_timeout_seconds": SECONDS}));
        let took = begun.elapsed();
        count += 1;
        if took > Duration::from_secs(1) {
            let status = answer.as_ref().map_or(0, |answer| answer.status);
            println!("{status} after {took:?}: {}", shown(&query));
        }
        all.extend(wrong(&answer, may, took).map(|wrong| format!("{}\n    {wrong}", shown(&query))));
    }
    ensure!(all.is_empty(), "{} of {count} hostile queries:\n{}", all.len(), all.join("\n"));
    Ok(())
}

/// Checks that a slow query is ended at its time limit.
fn time_is_kept(world: &HostileWorld) -> Result<()> {
    let each: Vec<String> = (0..5).map(|n| format!("output.big as (v{n})")).collect();
    let query =
        format!("from: project_logs('{}') | unpivot: {} | measures: count(1) as n", world.long, each.join(", "));
    let begun = Instant::now();
    let answer = world.ask(&json!({"query": query, "query_timeout_seconds": SECONDS}))?;
    let took = begun.elapsed();
    println!("a query of a second ended after {took:?} with {}", answer.status);
    ensure!(answer.status == 504, "a million million rows within a second: {} {}", answer.status, answer.text());
    ensure!(took < Duration::from_secs(SECONDS) + LATE_MAX, "it was ended after {took:?}");
    Ok(())
}

/// Runs many queries at once: each is answered, or refused with a retry time.
fn many_at_once(world: &HostileWorld) -> Result<()> {
    let from = format!("project_logs('{}')", world.long);
    let queries = [
        format!("SELECT count(1) AS n FROM {from} WHERE input LIKE '%a%b'"),
        format!("SELECT id, input FROM {from} LIMIT 20"),
        format!("SELECT v, count(1) AS n FROM {from} UNPIVOT (v FOR _ IN (output.big)) GROUP BY v"),
    ];
    let statuses = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..AT_ONCE {
            let (query, statuses) = (&queries[number % queries.len()], &statuses);
            scope.spawn(move || {
                let body = json!({"query": query, "query_timeout_seconds": SECONDS});
                let silence = assay_test_api::http::SILENCE_MAX;
                let status = match exchange(world.url(), &request(&body), silence) {
                    Ok(Exchange::Answered(answer)) => answer.status,
                    _ => 0,
                };
                statuses.lock().expect("no thread panics").push(status);
            });
        }
    });
    let statuses = statuses.into_inner().expect("no thread panicked");
    let count = |status: u16| statuses.iter().filter(|known| **known == status).count();
    println!("of {AT_ONCE} at once: {} answered, {} busy, {} late", count(200), count(429), count(504));
    ensure!(count(200) + count(429) + count(504) == AT_ONCE, "{statuses:?}");
    ensure!(count(200) > 0, "none of {AT_ONCE} was answered");
    Ok(())
}

/// Runs a hostile query beside simple ones.
fn beside(world: &HostileWorld, what: &str, may_be_refused: bool, hostile: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = world.memory("VmRSS")?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let simple = scope.spawn(|| world.simple_until(&stop, may_be_refused));
        let done = hostile();
        stop.store(true, Ordering::Relaxed);
        let simple = simple.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        done.and(simple.map(|(longest, count)| println!("beside {what}: {count} simple queries, at most {longest:?}")))
    })?;
    let (now, most) = (world.memory("VmRSS")?, world.memory("VmHWM")?);
    println!("behind {what}: {} MiB before, {} now, {} at most", before >> 20, now >> 20, most >> 20);
    Ok(())
}

fn all(world: &HostileWorld) -> Result<()> {
    let before = world.memory("VmHWM")?;
    let heavy = heavy(&world.long).into_iter().map(|(query, may)| (json!(query), may));
    let queries = heavy.chain(deep(&world.long)).collect();
    beside(world, "hostile queries", false, || each_is_answered_or_refused(world, queries))?;
    beside(world, "many queries", true, || many_at_once(world))?;
    stays_well(world, before)
}

/// Checks that all effects are over.
fn stays_well(world: &HostileWorld, before: u64) -> Result<()> {
    let gained = world.memory("VmHWM")?.saturating_sub(before);
    ensure!(gained < GAINED_BYTES_MAX, "the process had {} MiB more than before", gained >> 20);
    insert(world.url(), &world.small, &[json!({"id": "after", "input": 2})])?;
    let after = world.nodes.asked(&world.simple())?;
    ensure!(after["data"] == json!([{"n": 2}]), "{after}");
    Ok(())
}

#[test]
fn hostile_queries_of_rows_in_memory_hurt_nobody() {
    let world = HostileWorld::start(&SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    held(&world.nodes, all(&world));
}

#[test]
fn hostile_queries_of_rows_in_segments_hurt_nobody() {
    let settings = [SETTINGS.as_slice(), &[SEALS]].concat();
    let world = HostileWorld::start(&settings).unwrap_or_else(|error| panic!("{error:#}"));
    held(&world.nodes, world.nodes.sealed().and_then(|()| all(&world)));
}

#[test]
fn the_deepest_that_is_read_is_answered() {
    let world = HostileWorld::start(&SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    let of =
        |expr: String| (json!(format!("SELECT {expr} AS x FROM project_logs('{}') LIMIT 1", world.long)), May::Answer);
    let [calls, cases] =
        [("abs(", ")"), ("case when true then ", " end")].map(|(open, close)| of(nested(open, "1", close, DEPTH)));
    held(&world.nodes, each_is_answered_or_refused(&world, vec![calls, cases]));
}

#[test]
fn rows_that_cost_much_hurt_nobody() {
    let world = HostileWorld::start(&SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    let all = || -> Result<()> {
        let before = world.memory("VmHWM")?;
        beside(&world, "a slow query", false, || time_is_kept(&world))?;
        let queries = costly(&world.long).into_iter().map(|(query, may)| (json!(query), may)).collect();
        beside(&world, "rows that cost much", false, || each_is_answered_or_refused(&world, queries))?;
        stays_well(&world, before)
    };
    held(&world.nodes, all());
}
