//! Permanent loss of a majority: the remaining node reports it, does nothing by itself, and continues alone on command.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::process::{Ran, run};
use assay_test_api::rows::{Rows, call, knock};
use assay_test_api::server::{Options, Server};
use serde_json::Value;

/// Remaining node. Not the founder: its data came from others.
const LEFT: usize = 3;
const OBJECTS: usize = 6;
/// Time limit for a node without contact to the catalog's majority for 5 s to be not ready.
const NOTICED_MAX: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(100);
/// File that a recovery leaves for the next start.
const MARKER: &str = "RECOVERING";

fn cluster(dir: &Path, words: &[&str], input: &str) -> Result<Ran> {
    let dir = dir.to_str().context("a path that is text")?;
    run(&[["cluster"].as_slice(), words, &["--data-dir", dir]].concat(), &[], input)
}

/// Returns the ids that `words` are reported of.
fn list(status: &Value, field: &str) -> Vec<String> {
    let items = status[field].as_array().into_iter().flatten();
    items.map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
}

/// Checks the reports of the isolated node: not ready with the reason, alive, and the cluster status from there.
fn says_so(url: &str, dir: &Path) -> Result<()> {
    let begun = Instant::now();
    loop {
        let (status, text) = knock(url, "/readyz")?;
        if status == 503 && text.contains("no majority of the catalog responds") {
            break;
        }
        ensure!(begun.elapsed() < NOTICED_MAX, "after {NOTICED_MAX:?} it still says {status}: {text}");
        std::thread::sleep(POLL);
    }
    println!("not ready {:?} after the others were killed", begun.elapsed());
    let status = cluster(dir, &["status", "--json"], "")?.json()?;
    let (health, text) = knock(url, "/healthz")?;
    ensure!(health == 200, "a node that waits for others must not be restarted: {health} {text}");
    let (ready, text) = knock(url, "/readyz")?;
    ensure!(ready == 503 && text.contains("groups have no leader"), "{ready}: {text}");

    ensure!(status["quorum"] == false && status["settled"] == false, "{status}");
    let unsettled = list(&status, "unsettled");
    let said = |part: &str| unsettled.iter().any(|line| line.contains(part));
    for part in [
        "no majority of the catalog responds",
        "node 1 does not answer",
        "node 2 does not answer",
        "shard 0 has no leader",
    ] {
        ensure!(said(part), "{part}: {unsettled:?}");
    }
    let groups = status["groups"].as_array().context("groups")?;
    let led: Vec<&Value> = groups.iter().filter(|group| !group["leader"].is_null()).collect();
    ensure!(led.is_empty(), "nobody can lead without a majority: {led:?}");
    Ok(())
}

/// Up to the last word nothing is changed.
fn asks_first(dir: &Path) -> Result<()> {
    let replicas = std::fs::read(dir.join("REPLICAS"))?;
    let said = cluster(dir, &["recover"], "")?;
    ensure!(said.success, "{}", said.errors);
    for part in [
        "Node 3 would continue alone",
        "It would give up the nodes 1, 2",
        "are lost",
        "Never start a node",
        "Nothing was changed",
    ] {
        ensure!(said.out.contains(part), "{part}: {}", said.out);
    }
    let found = cluster(dir, &["recover", "--json"], "")?.json()?;
    ensure!(list(&found, "given_up") == ["1", "2"] && list(&found, "lost").is_empty(), "{found}");
    for answer in ["", "no\n", "y\n"] {
        let said = cluster(dir, &["recover", "--force"], answer)?;
        ensure!(
            !said.success && said.errors.contains("nothing was changed"),
            "{answer:?}: {}{}",
            said.out,
            said.errors
        );
        ensure!(
            said.errors.contains("Type the word yes") && said.out.contains("would give up the nodes"),
            "{}",
            said.errors
        );
    }
    ensure!(!cluster(dir, &["recover", "--yes"], "")?.success, "--yes alone says nothing of --force");
    ensure!(!dir.join(MARKER).exists() && std::fs::read(dir.join("REPLICAS"))? == replicas, "something was changed");
    Ok(())
}

fn goes_on(dir: &Path, rows: &mut Rows) -> Result<()> {
    let said = cluster(dir, &["recover", "--force"], "yes\n")?;
    ensure!(said.success && said.out.contains("Done"), "{}{}", said.out, said.errors);
    ensure!(cluster(dir, &["recover", "--force", "--yes"], "")?.success, "asked again it does the same again");
    let server = Server::start(&Options { key: None, ..Options::new(dir) })?;
    ensure!(!server.printed_key, "it made a key, as a new cluster would");
    println!("alone it has {} rows", rows.all_there(&server.url)?);
    let before = rows.refusals;
    rows.write(&server.url, "after")?;
    ensure!(rows.refusals == before, "a node that is alone takes writes");
    rows.all_there(&server.url)?;
    ensure!(knock(&server.url, "/readyz")?.0 == 200, "ready");
    let status = cluster(dir, &["status", "--json"], "")?.json()?;
    ensure!(status["quorum"] == true && status["settled"] == true, "{status}");
    let removed = status["nodes"].as_array().into_iter().flatten().filter(|node| node["state"] == "removed").count();
    ensure!(removed == NODES - 1, "{status}");
    let why = cluster(dir, &["recover"], "")?.errors;
    ensure!(why.contains("in use by another process"), "while it runs: {why}");
    ensure!(server.stop()?.success(), "it stops well");
    let why = cluster(dir, &["recover", "--force", "--yes"], "")?;
    ensure!(!why.success && !why.out.contains("give up"), "there is nothing left to recover from: {}", why.out);
    Ok(())
}

#[test]
fn a_node_without_its_majority_says_so_and_goes_on_alone_when_it_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let left = data.join(format!("node-{LEFT}"));
    let dev = Dev::start(&data).unwrap_or_else(|error| panic!("{error:#}"));
    let cut = || -> Result<Rows> {
        let url = &dev.urls[LEFT - 1];
        let mut rows = Rows::new(&dev.urls, OBJECTS)?;
        for (round, url) in dev.urls.iter().enumerate() {
            rows.write(url, &format!("round-{round}"))?;
        }
        ensure!(rows.acknowledged() == OBJECTS * NODES, "{rows:?}");
        // A read waits until the node that is asked has all that was acknowledged.
        rows.all_there(url)?;
        for node in (1..=NODES).filter(|node| *node != LEFT) {
            dev.kill(node)?;
        }
        says_so(url, &left)?;
        let refused = call(url, "POST", "/v1/project", &serde_json::json!({"name": "too late"}));
        ensure!(refused.is_err(), "nothing is written without a majority");
        Ok(rows)
    };
    let mut rows = cut().unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
    dev.kill_all();
    asks_first(&left).unwrap_or_else(|error| panic!("{error:#}"));
    goes_on(&left, &mut rows).unwrap_or_else(|error| panic!("{error:#}"));
}
