//! Restores of random seconds of a cluster of three: exactly what was acknowledged before the second is there, also on
//! five nodes, and the restored nodes and those of the living cluster refuse each other.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use assay_test_api::backup::{Backup, create, next_second, text};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::process::{Ran, run};
use assay_test_api::rows::Rows;
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

const OBJECTS: usize = 6;
const SECONDS: usize = 3;
/// Nodes that the restored cluster grows to.
const GROWN: usize = 5;
/// Time in which the living nodes call a node in their place several times.
const WATCHED: Duration = Duration::from_secs(6);
/// Attempts at a read while leads move to other nodes.
const READS_MAX: usize = 15;
const READ_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a write.
const PAUSE_MILLIS_MAX: u32 = 400;

fn cluster(dir: &Path, words: &[&str]) -> Result<Ran> {
    run(&[["cluster"].as_slice(), words, &["--data-dir", text(dir)?]].concat(), &[], "")
}

fn status(dir: &Path, words: &[&str]) -> Result<Value> {
    cluster(dir, &[&["status", "--json"], words].concat())?.json()
}

/// Writes at all nodes, behind random pauses.
fn write(dev: &Dev, rows: &mut Rows, name: &str) -> Result<()> {
    for (node, url) in dev.urls.iter().enumerate() {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
        std::thread::sleep(Duration::from_millis(u64::from(nanos / 1_000 % PAUSE_MILLIS_MAX)));
        rows.write(url, &format!("{name}-{node}"))?;
    }
    Ok(())
}

/// Writes before and behind some seconds. Returns what was acknowledged before each, and all.
fn written(dev: &Dev, data: &Path) -> Result<(Vec<(String, Rows)>, Rows)> {
    let mut rows = Rows::new(&dev.urls, OBJECTS)?;
    create(&data.join("node-1"))?;
    let mut seconds = Vec::new();
    for number in 0..SECONDS {
        write(dev, &mut rows, &format!("before-{number}"))?;
        let second = next_second()?;
        seconds.push((second, rows.clone()));
        write(dev, &mut rows, &format!("behind-{number}"))?;
    }
    create(&data.join("node-3"))?;
    Ok((seconds, rows))
}

fn exactly(server: &Server, rows: &Rows) -> Result<()> {
    let found = rows.all_there(&server.url)?;
    ensure!(found == rows.acknowledged(), "{found} rows are there, of {}", rows.acknowledged());
    Ok(())
}

fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

fn serve(dir: &Path, peer_address: &str) -> Result<Server> {
    let settings = vec![format!("cluster.peer_address={peer_address}")];
    Server::start(&Options { key: None, settings, ..Options::new(dir) })
}

/// Lets nodes join a restored one, until there are five.
fn grown(dir: &Path, first: &Path, rows: &Rows) -> Result<()> {
    let mut servers = vec![serve(first, &free_address()?)?];
    exactly(&servers[0], rows)?;
    for number in 2..=GROWN {
        let (home, address) = (dir.join(format!("joined-{number}")), free_address()?);
        let token = cluster(first, &["token"])?;
        ensure!(token.success, "{}", token.errors);
        let joined = cluster(&home, &["join", token.out.trim(), "--peer-address", &address])?;
        ensure!(joined.success, "{}", joined.errors);
        std::fs::copy(first.join("master.key"), home.join("master.key"))?;
        servers.push(serve(&home, &address)?);
    }
    let settled = status(&dir.join("joined-5"), &["--wait"])?;
    let present = settled["nodes"].as_array().into_iter().flatten().filter(|node| node["state"] != "removed").count();
    ensure!(present == GROWN, "{settled}");
    for server in &servers {
        exactly(server, rows)?;
    }
    let mut more = rows.clone();
    more.write(&servers[GROWN - 1].url, "after")?;
    exactly(&servers[0], &more)?;
    // What the first node had is on the others.
    servers.remove(0).kill()?;
    for _ in 0..READS_MAX {
        if more.all_there(&servers[0].url).is_ok() {
            break;
        }
        std::thread::sleep(READ_PAUSE);
    }
    exactly(&servers[0], &more)
}

/// Starts a restored state in the place of a node of the living cluster.
fn refused(dev: &Dev, data: &Path, (backup, dir): (&Backup, &Path), all: &Rows) -> Result<()> {
    let living = data.join("node-1");
    let before = status(&living, &[])?;
    let cluster_id = before["cluster"].as_str().context("the id of the cluster")?;
    let mut nodes = before["nodes"].as_array().into_iter().flatten();
    let third = nodes.find(|node| node["id"] == json!(NODES)).context("a third node")?;
    let address = third["address"].as_str().context("an address")?.to_owned();
    dev.kill(NODES)?;
    let old = dir.join("old");
    backup.restore(&old, None)?;

    let settings = vec![format!("store.cluster_id={cluster_id}"), format!("cluster.peer_address={address}")];
    let said = Server::refusal(&Options { key: None, settings, ..Options::new(&old) })?;
    ensure!(said.contains("belongs to cluster") && said.contains(cluster_id), "{said}");
    let token = cluster(&living, &["token"])?;
    let said = cluster(&old, &["join", token.out.trim(), "--peer-address", &address])?;
    ensure!(!said.success && said.errors.contains("give the new node an empty directory"), "{}", said.errors);

    // Without the id it starts in the other one's place, and stays alone: the living nodes do not count it as theirs.
    let server = serve(&old, &address)?;
    exactly(&server, all)?;
    let mut apart = all.clone();
    apart.write(&server.url, "apart")?;
    ensure!(apart.acknowledged() == all.acknowledged() + OBJECTS, "it serves by itself");
    std::thread::sleep(WATCHED);
    let (there, here) = (status(&living, &[])?, status(&old, &[])?);
    let unsettled = there["unsettled"].to_string();
    ensure!(unsettled.contains("node 3 does not answer"), "{unsettled}");
    ensure!(there["quorum"] == true && there["cluster"] == before["cluster"], "{there}");
    ensure!(here["cluster"] != before["cluster"] && here["settled"] == true, "{here}");
    let found = all.all_there(&dev.urls[0])?;
    ensure!(found == all.acknowledged(), "{found} rows are in the living cluster");
    ensure!(server.stop()?.success(), "it stops well");
    Ok(())
}

#[test]
fn restored_seconds_hold_exactly_what_was_acknowledged_on_one_node_and_on_five() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let backup = Backup::in_directory(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
    let environment = backup.environment().expect("texts");
    let environment: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let dev = Dev::start_with(&data, &environment).unwrap_or_else(|error| panic!("{error:#}"));
    let (seconds, all) = written(&dev, &data).unwrap_or_else(|error| panic!("{error:#}\n{}", dev.log()));
    let old = refused(&dev, &data, (&backup, dir.path()), &all);
    old.unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
    dev.kill_all();
    let each = || -> Result<()> {
        for (number, (second, rows)) in seconds.iter().enumerate() {
            let restored = dir.path().join(format!("second-{number}"));
            let done = backup.restore(&restored, Some(second))?;
            ensure!(done["restored"] == json!(second), "{done}");
            if number == SECONDS - 1 {
                grown(dir.path(), &restored, rows)?;
                continue;
            }
            let server = Server::start(&Options { key: None, ..Options::new(&restored) })?;
            exactly(&server, rows).with_context(|| second.clone())?;
            ensure!(server.stop()?.success(), "it stops well");
        }
        Ok(())
    };
    each().unwrap_or_else(|error| panic!("{error:#}"));
}
