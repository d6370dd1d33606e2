//! Acknowledged writes are visible to the next query on any node; a stored version has the same bytes on every node.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::nodes::{Nodes, ask, asked, held, insert, logs};

const NODES: usize = 3;
/// Rows that are written and read at once.
const WRITES: usize = 200;
/// Sealed now and then, so that some of the rows move meanwhile.
const SETTINGS: [(&str, &str); 1] = [("ASSAY_STORE_SEAL_AGE_SECONDS", "1")];
const OBJECTS: usize = 2;
const VERSIONS: usize = 8;
/// Reads of each version from each node.
const ROUNDS: usize = 3;
const ROWS_AT_FIRST: usize = 60;

/// One row is written, changed and read on three nodes, another one first each time.
fn is_seen_at_once(nodes: &Nodes, project: &str, number: usize) -> Result<()> {
    let at = |place: usize| nodes.dev.urls[(number + place) % nodes.dev.urls.len()].as_str();
    let id = format!("row-{number}");
    insert(at(0), project, &[json!({"id": id, "metadata": {"n": number}, "metrics": {"tokens": 1}})])?;
    let query = format!("SELECT metadata.n AS n, metadata.m AS m FROM project_logs('{project}') WHERE id = '{id}'");
    let found = asked(at(1), &json!({"query": query}))?;
    ensure!(found["data"] == json!([{"n": number, "m": null}]), "row {number} at once: {}", found["data"]);
    insert(at(1), project, &[json!({"id": id, "_is_merge": true, "metadata": {"m": number}})])?;
    let found = asked(at(2), &json!({"query": query}))?;
    ensure!(found["data"] == json!([{"n": number, "m": number}]), "row {number} merged: {}", found["data"]);
    let query = format!("SELECT count(1) AS n, sum(metrics.tokens) AS t FROM project_logs('{project}')");
    let found = asked(at(0), &json!({"query": query}))?;
    let all = json!([{"n": number + 1, "t": number + 1}]);
    ensure!(found["data"] == all, "the sum behind row {number}: {}", found["data"]);
    Ok(())
}

#[test]
fn what_was_acknowledged_is_seen_at_once_on_every_node() {
    let nodes = Nodes::start(NODES, &SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    let all = || -> Result<()> {
        let projects = [nodes.project("fresh 0")?, nodes.project("fresh 1")?];
        (0..WRITES).try_for_each(|n| is_seen_at_once(&nodes, &projects[n % projects.len()], n / projects.len()))
    };
    held(&nodes, all());
}

/// Queries of a version whose answers must be the same bytes for ever.
fn queries(projects: &[String]) -> Vec<String> {
    let of = |shape: &str| logs(projects, shape);
    vec![
        format!("SELECT * FROM {} LIMIT 100", of("spans")),
        format!("SELECT id, input, metadata FROM {} ORDER BY id", logs(&projects[..1], "spans")),
        format!("SELECT * FROM {} LIMIT 20", of("summary")),
        format!("SELECT id FROM {} WHERE metadata.touched IS NOT NULL LIMIT 5", of("traces")),
        format!("SELECT metadata.g AS g, count(1) AS n, sum(metrics.tokens) AS t FROM {} GROUP BY g", of("spans")),
    ]
}

fn change(nodes: &Nodes, projects: &[String], stop: &AtomicBool) -> Result<()> {
    for turn in 0_usize.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let rows = [
            json!({"id": format!("new-{turn}"), "metadata": {"g": turn % 3}, "metrics": {"tokens": turn}}),
            json!({"id": format!("row-{}", turn * 7 % ROWS_AT_FIRST), "_is_merge": true, "metadata": {"touched": turn}}),
            json!({"id": format!("new-{}", turn / 2), "_object_delete": true}),
        ];
        insert(nodes.url(), &projects[turn % projects.len()], &rows)?;
    }
    Ok(())
}

/// Reads each version repeatedly, while others are added.
fn versions_stay(nodes: &Nodes, projects: &[String]) -> Result<()> {
    let newest = format!("SELECT max(_xact_id) AS v FROM {}", logs(projects, "spans"));
    let mut known: BTreeMap<(String, String), Vec<u8>> = BTreeMap::new();
    for _ in 0..VERSIONS {
        let version = nodes.asked(&json!({"query": newest}))?["data"][0]["v"].as_str().context("a version")?.to_owned();
        let all: Vec<String> = known.keys().map(|(version, _)| version.clone()).chain([version]).collect();
        for (place, query) in queries(projects).into_iter().enumerate() {
            for round in 0..ROUNDS {
                // The newest, and one of those before it.
                for version in [&all[all.len() - 1], &all[(place + round) % all.len()]] {
                    for url in &nodes.dev.urls {
                        let answer = ask(url, &json!({"query": query, "version": version}))?;
                        ensure!(answer.status == 200, "{query} at {version}: {}", answer.text());
                        let first = known.entry((version.clone(), query.clone())).or_insert(answer.body.clone());
                        let (first, now) = (String::from_utf8_lossy(first), answer.text());
                        ensure!(first == now, "{query} at {version}, {url}:\n{first}\nand\n{now}");
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_stored_version_is_the_same_bytes_from_every_node_while_rows_are_written() {
    let nodes = Nodes::start(NODES, &SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    let all = || -> Result<()> {
        let projects: Vec<String> = (0..OBJECTS).map(|n| nodes.project(&format!("kept {n}"))).collect::<Result<_>>()?;
        for project in &projects {
            let row = |n: usize| json!({"id": format!("row-{n}"), "input": n, "metadata": {"g": n % 3}});
            nodes.insert(project, &(0..ROWS_AT_FIRST).map(row).collect::<Vec<Value>>())?;
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| change(&nodes, &projects, &stop));
            let stay = versions_stay(&nodes, &projects);
            stop.store(true, Ordering::Relaxed);
            writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
            stay
        })
    };
    held(&nodes, all());
}
