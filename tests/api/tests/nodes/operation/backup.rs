//! Backup of a cluster to a directory: everything is lost, and the state of a second and the newest one are restored.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_test_api::backup::{Backup, create, next_second, text};
use assay_test_api::dev::Dev;
use assay_test_api::process::run;
use assay_test_api::rows::{Rows, call, knock};
use assay_test_api::server::{Options, Server};
use serde_json::json;

const OBJECTS: usize = 6;
/// Size of a row that is stored as a large write, beside the log.
const LARGE_BYTES: usize = 1 << 20;

fn large_row(project: &str, url: &str, id: &str) -> Result<()> {
    let body = json!({"events": [{"id": id, "input": "x".repeat(LARGE_BYTES)}]});
    call(url, "POST", &format!("/v1/project_logs/{project}/insert"), &body).map(drop)
}

fn ids_of(project: &str, url: &str) -> Result<Vec<String>> {
    let page = call(url, "POST", &format!("/v1/project_logs/{project}/fetch"), &json!({"limit": 100}))?;
    let ids =
        page["events"].as_array().context("events")?.iter().map(|row| row["id"].as_str().unwrap_or("").to_owned());
    let mut ids: Vec<_> = ids.collect();
    ids.sort();
    Ok(ids)
}

/// Starts a restored node, and returns it once it is ready.
fn started(dir: &Path) -> Result<Server> {
    let server = Server::start(&Options { key: None, ..Options::new(dir) })?;
    ensure!(!server.printed_key, "it made a key, as a new cluster would");
    ensure!(knock(&server.url, "/readyz")?.0 == 200, "{}", server.log());
    Ok(server)
}

struct WrittenRows {
    early: Rows,
    all: Rows,
    project: String,
    second: String,
    cluster: String,
}

/// Writes, makes backups in between, and writes on behind the second that is restored later.
fn write(dev: &Dev, data: &Path) -> Result<WrittenRows> {
    let mut rows = Rows::new(&dev.urls, OBJECTS)?;
    let url = &dev.urls[0];
    let project = call(url, "POST", "/v1/project", &json!({"name": "large"}))?["id"].as_str().context("id")?.to_owned();
    for (round, url) in dev.urls.iter().enumerate() {
        rows.write(url, &format!("round-{round}"))?;
    }
    let node = data.join("node-2");
    let made = create(&node)?;
    ensure!(made["backup"].is_string(), "{made}");
    for (round, url) in dev.urls.iter().enumerate() {
        rows.write(url, &format!("behind-{round}"))?;
        large_row(&project, url, &format!("early-{round}"))?;
    }
    let early = rows.clone();
    let second = next_second()?;
    for (round, url) in dev.urls.iter().enumerate() {
        rows.write(url, &format!("late-{round}"))?;
        large_row(&project, url, &format!("late-{round}"))?;
    }
    create(&node)?;
    let status = run(&["cluster", "status", "--json", "--data-dir", text(&node)?], &[], "")?.json()?;
    let cluster = status["cluster"].as_str().unwrap_or_default().to_owned();
    Ok(WrittenRows { early, all: rows, project, second, cluster })
}

fn restored(backup: &Backup, dir: &Path, written: &WrittenRows) -> Result<()> {
    let verified = backup.run(&["verify"])?;
    ensure!(verified.success, "{}{}", verified.out, verified.errors);
    let listed = backup.run(&["list", "--json"])?.json()?;
    ensure!(listed["backups"].as_array().is_some_and(|backups| backups.len() == 2), "{listed}");
    ensure!(listed["every_second"]["from"].as_str() < Some(&written.second), "{listed}");

    let (at_second, newest) = (dir.join("at-second"), dir.join("newest"));
    let done = backup.restore(&at_second, Some(&written.second))?;
    ensure!(done["cluster"] != json!(written.cluster), "a restored cluster has an identity of its own: {done}");
    let refused = backup.run(&["restore", "--data-dir", text(&at_second)?])?;
    ensure!(!refused.success && refused.errors.contains("empty directory"), "{}", refused.errors);
    let server = started(&at_second)?;
    let found = written.early.all_there(&server.url)?;
    ensure!(found == written.early.acknowledged(), "{found} rows are there, of {}", written.early.acknowledged());
    let ids = ids_of(&written.project, &server.url)?;
    ensure!(ids == ["early-0", "early-1", "early-2"], "{ids:?}");
    ensure!(server.stop()?.success(), "it stops well");

    backup.restore(&newest, None)?;
    let server = started(&newest)?;
    let found = written.all.all_there(&server.url)?;
    ensure!(found == written.all.acknowledged(), "{found} rows are there, of {}", written.all.acknowledged());
    let mut more = written.all.clone();
    more.write(&server.url, "after")?;
    more.all_there(&server.url)?;
    ensure!(server.stop()?.success(), "it stops well");
    Ok(())
}

fn refusals(backup: &Backup, dir: &Path) -> Result<()> {
    let again = run(&["backup", "key", text(&backup.key)?], &[], "")?;
    ensure!(!again.success && again.errors.contains("never replaced"), "{}", again.errors);
    let other = Backup { key: dir.join("other.key"), ..backup.clone() };
    ensure!(run(&["backup", "key", text(&other.key)?], &[], "")?.success, "a key");
    let said = other.run(&["list"])?;
    ensure!(!said.success && said.errors.contains("encrypted with the key"), "{}", said.errors);
    let said = backup.run(&["restore", "--data-dir", text(&dir.join("x"))?, "--at", "2020-01-01T00:00:00Z"])?;
    ensure!(!said.success && said.errors.contains("begins at"), "{}", said.errors);
    let said = backup.run(&["restore", "--data-dir", text(&dir.join("x"))?, "--at", "2199-01-01T00:00:00Z"])?;
    ensure!(!said.success && said.errors.contains("reaches"), "{}", said.errors);
    ensure!(!dir.join("x").join("FORMAT").exists(), "nothing was restored");
    Ok(())
}

#[test]
fn a_lost_cluster_is_restored_at_a_second_and_at_its_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let backup = Backup::in_directory(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
    let environment = backup.environment().expect("texts");
    let environment: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let dev = Dev::start_with(&data, &environment).unwrap_or_else(|error| panic!("{error:#}"));
    let written = write(&dev, &data);
    let written = written.unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
    dev.kill_all();
    std::fs::remove_dir_all(&data).expect("all is lost");
    restored(&backup, dir.path(), &written).unwrap_or_else(|error| panic!("{error:#}"));
    refusals(&backup, dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
}
