//! Many objects on all shards are one query to three nodes; without a majority it soon fails with an error that names
//! the missing part.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::NODES;
use serde_json::{Value, json};

use crate::judge::same_row;
use crate::nodes::{Nodes, ask, asked, counted, held, logs};

/// Some on nearly every one of sixteen shards.
const OBJECTS: usize = 30;
const ROWS: usize = 20;
/// Wide rows for a scan by an unselective column, and their bytes.
const WIDE_ROWS: usize = 10;
const WIDE_BYTES: usize = 20_000;
/// Maximum share of scanned bytes that is sent between nodes.
const SENT_PERCENT_MAX: f64 = 1.0;
const SENT_LOOKS: usize = 10;
/// Time limit of the query.
const SECONDS: u64 = 4;
/// Margin for a debug build on a busy machine.
const LATE_MAX: Duration = Duration::from_secs(8);
/// Time limit from the start of the nodes until each shard has a known leader.
const BACK_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

fn write(nodes: &Nodes) -> Result<Vec<String>> {
    let one = |object: usize| -> Result<String> {
        let project = nodes.project(&format!("object {object}"))?;
        let row = |n: usize| {
            json!({
                "id": format!("{object}-{n}"), "metadata": {"model": format!("m{}", (object + n) % 4), "n": n * object},
                "span_attributes": {"type": "llm"}, "metrics": {"tokens": object * n, "start": n, "end": n + object},
                "scores": {"good": (n % 11) as f64 / 10.0}, "tags": [format!("t{}", n % 3)],
            })
        };
        nodes.insert(&project, &(0..ROWS).map(row).collect::<Vec<Value>>())?;
        Ok(project)
    };
    (0..OBJECTS).map(one).collect()
}

/// Returns queries with results independent of the order of rows.
fn queries(projects: &[String]) -> Vec<String> {
    let (spans, summary) = (logs(projects, "spans"), logs(projects, "summary"));
    vec![
        format!(
            "SELECT metadata.model AS m, count(1) AS n, sum(metrics.tokens) AS t, avg(scores.good) AS g, min(id) AS f, \
             max(metadata.n) AS h, count_distinct(metadata.n) AS d, percentile(metrics.duration, 0.9) AS p \
             FROM {spans} GROUP BY m ORDER BY m"
        ),
        format!("SELECT id, metrics.tokens AS t FROM {spans} WHERE scores.good > 0.5 ORDER BY t DESC, id LIMIT 50"),
        format!("SELECT count(1) AS n, sum(metrics.duration) AS d FROM {summary} WHERE scores.good >= 0.3"),
        format!("SELECT tag, count(1) AS n FROM {spans} UNPIVOT (tag FOR _ IN (tags)) GROUP BY tag"),
    ]
}

fn rows(url: &str, query: &str) -> Result<Vec<Value>> {
    let found = asked(url, &json!({"query": query}))?;
    let rows = found["data"].as_array().context("data")?.clone();
    ensure!(!rows.is_empty(), "{query}: no rows");
    Ok(rows)
}

/// Returns each query's rows from every node; they are equal.
fn answers(nodes: &Nodes, projects: &[String]) -> Result<Vec<Vec<Value>>> {
    let mut all = Vec::new();
    for query in queries(projects) {
        let first = rows(&nodes.dev.urls[0], &query)?;
        for url in &nodes.dev.urls[1..] {
            let other = rows(url, &query)?;
            ensure!(same_row(&first, &other), "{query}:\n{first:?}\nand at {url}\n{other:?}");
        }
        all.push(first);
    }
    Ok(all)
}

/// Two of three are gone.
fn fails_soon(nodes: &Nodes, projects: &[String]) -> Result<()> {
    nodes.dev.kill(2)?;
    nodes.dev.kill(3)?;
    for (number, query) in queries(projects).into_iter().enumerate() {
        let begun = Instant::now();
        let answer = ask(&nodes.dev.urls[0], &json!({"query": query, "query_timeout_seconds": SECONDS}))?;
        let took = begun.elapsed();
        println!("with one node of three after {took:?}: {} {}", answer.status, answer.text());
        ensure!([503, 504].contains(&answer.status), "{}: {}", answer.status, answer.text());
        ensure!(took < Duration::from_secs(SECONDS) + LATE_MAX, "it failed after {took:?}");
        // A node that was cut off for a while says so of the whole cluster, whatever it is asked.
        let names = answer.text().contains("shard") || number > 0 && answer.text().contains("no majority of the c");
        ensure!(names, "it names no shard: {}", answer.text());
    }
    Ok(())
}

/// Checks that nodes send each other group states for a query over all rows, and no rows.
fn states_are_sent(nodes: &Nodes) -> Result<()> {
    let mut projects = Vec::new();
    for object in 0..OBJECTS {
        let project = nodes.project(&format!("wide {object}"))?;
        let row =
            |n: usize| json!({"metadata": {"model": format!("m{}", n % 3)}, "input": "words ".repeat(WIDE_BYTES / 6)});
        nodes.insert(&project, &(0..WIDE_ROWS).map(row).collect::<Vec<Value>>())?;
        projects.push(project);
    }
    let query = format!(
        "SELECT metadata.model AS m, count(1) AS n, sum(len(input)) AS letters, max(created) AS last FROM {} GROUP BY m",
        logs(&projects, "spans")
    );
    let sent = || nodes.dev.urls.iter().map(|url| counted(url, "assay_peer_sent_bytes_total{")).sum::<Result<f64>>();
    // The slowest replica of a shard may still be sent what was inserted: the least of several times is the question's.
    let mut least = f64::INFINITY;
    let mut found = Vec::new();
    for _ in 0..SENT_LOOKS {
        let before = sent()?;
        found = rows(&nodes.dev.urls[0], &query)?;
        least = least.min(sent()? - before);
        std::thread::sleep(POLL);
    }
    let sent = least;
    all_are_asked(&nodes.dev.urls[0], &query)?;
    let letters: u64 = found.iter().filter_map(|row| row["letters"].as_u64()).sum();
    println!("{letters} letters were scanned, {sent} bytes sent");
    ensure!(letters as usize >= OBJECTS * WIDE_ROWS * (WIDE_BYTES - 6), "{found:?}");
    ensure!(sent > 0.0, "no other node was asked, or none counts what it sends");
    ensure!(sent * 100.0 < SENT_PERCENT_MAX * letters as f64, "{sent} bytes were sent of {letters}");
    Ok(())
}

/// Checks the plan: the nodes together read all objects, and none reads all, once leaders are spread.
fn all_are_asked(url: &str, query: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        match are_asked(url, query) {
            Err(_) if begun.elapsed() < BACK_MAX => std::thread::sleep(POLL),
            other => return other,
        }
    }
}

fn are_asked(url: &str, query: &str) -> Result<()> {
    let found = asked(url, &json!({"query": query, "include_plan": true}))?;
    let plan = found["plan"].as_str().context("a plan")?;
    let places = plan.lines().filter_map(|line| line.trim().strip_prefix("node ")?.rsplit_once(", "));
    let objects: Vec<usize> = places
        .map(|(_, objects)| objects.strip_suffix(" objects").context("objects")?.parse().context("a number"))
        .collect::<Result<_>>()?;
    ensure!(objects.len() > 1 && objects.iter().sum::<usize>() == OBJECTS, "{plan}");
    Ok(())
}

/// Waits for results: nodes are ready as soon as they have contact with the catalog; leaders of shards may be elected a
/// moment later.
fn answers_again(nodes: &Nodes, projects: &[String]) -> Result<Vec<Vec<Value>>> {
    let begun = Instant::now();
    loop {
        match answers(nodes, projects) {
            Err(error) if begun.elapsed() < BACK_MAX => {
                println!("not yet: {error:#}");
                std::thread::sleep(POLL);
            }
            other => return other,
        }
    }
}

#[test]
fn three_nodes_answer_as_one_and_say_what_is_missing_without_a_majority() {
    let start = |count| Nodes::start(count, &[]).unwrap_or_else(|error| panic!("{error:#}"));
    let one = start(1);
    let wanted = write(&one).and_then(|projects| answers(&one, &projects)).unwrap_or_else(|error| panic!("{error:#}"));
    drop(one);
    let nodes = start(NODES);
    let lost = || -> Result<Vec<String>> {
        let projects = write(&nodes)?;
        let found = answers(&nodes, &projects)?;
        ensure!(alike(&found, &wanted), "three nodes:\n{found:?}\none:\n{wanted:?}");
        states_are_sent(&nodes)?;
        fails_soon(&nodes, &projects)?;
        Ok(projects)
    };
    let projects = lost().unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", nodes.dev.log()));
    let nodes = nodes.again_after_a_kill(&[]).unwrap_or_else(|error| panic!("{error:#}"));
    let again = answers_again(&nodes, &projects).and_then(|found| {
        ensure!(alike(&found, &wanted), "three nodes after a new start:\n{found:?}\none:\n{wanted:?}");
        Ok(())
    });
    held(&nodes, again);
}

fn alike(found: &[Vec<Value>], wanted: &[Vec<Value>]) -> bool {
    found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| same_row(found, wanted))
}
