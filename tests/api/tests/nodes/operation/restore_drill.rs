//! Restore drills against a living server: the backup holds while the server goes on, and a server with rows that the
//! backup lacks is noticed.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_test_api::backup::{Backup, create, text};
use assay_test_api::process::{Ran, run};
use assay_test_api::rows::{Rows, call};
use assay_test_api::server::{Options, Server, TEST_KEY};
use serde_json::{Value, json};

const OBJECTS: usize = 3;
const SHARDS: usize = 4;

fn drill(backup: &Backup, server: &Server, dir: &Path, name: &str) -> Result<(Ran, Value)> {
    let (scratch, report) = (dir.join("scratch"), dir.join(name));
    std::fs::create_dir_all(&scratch)?;
    let words = ["drill", "restore", "--location", &backup.location, "--key-file", text(&backup.key)?];
    let more = ["--url", &server.url, "--into", text(&scratch)?, "--report", text(&report)?];
    let ran = run(&[&words[..], &more].concat(), &[("ASSAY_API_KEY", TEST_KEY)], "")?;
    ensure!(std::fs::read_dir(&scratch)?.count() == 0, "the scratch space is left");
    let json = std::fs::read_to_string(report.with_extension("json")).with_context(|| ran.errors.clone())?;
    let markdown = std::fs::read_to_string(report.with_extension("md"))?;
    let verdict = if ran.success { "\nThe backup holds.\n" } else { "\n**The backup does not hold.**\n" };
    ensure!(markdown.contains(verdict), "{markdown}");
    Ok((ran, serde_json::from_str(&json)?))
}

fn started(data: &Path, environment: Vec<(String, String)>) -> Result<Server> {
    let settings = vec![format!("store.shards={SHARDS}")];
    Server::start(&Options { environment, settings, ..Options::new(data) })
}

/// Returns the objects of a report with a verdict.
fn with_verdict<'r>(report: &'r Value, verdict: &str) -> Vec<&'r Value> {
    report["objects"].as_array().into_iter().flatten().filter(|object| object["verdict"] == verdict).collect()
}

fn rehearsed(dir: &Path) -> Result<()> {
    let (backup, data) = (Backup::in_directory(dir)?, dir.join("data"));
    let server = started(&data, backup.environment()?)?;
    let url = std::slice::from_ref(&server.url);
    let mut rows = Rows::new(url, OBJECTS)?;
    for row in ["a", "b", "c"] {
        rows.write(&server.url, row)?;
    }
    let dataset = json!({"name": "set", "project_id": rows.objects[0]});
    let dataset = call(&server.url, "POST", "/v1/dataset", &dataset)?["id"].as_str().context("an id")?.to_owned();
    let insert = format!("/v1/dataset/{dataset}/insert");
    call(&server.url, "POST", &insert, &json!({"events": [{"id": "one", "input": 1}, {"id": "two", "input": 2}]}))?;
    create(&data)?;

    let (ran, report) = drill(&backup, &server, dir, "quiet")?;
    ensure!(ran.success, "{}{}", ran.out, ran.errors);
    let logs: Vec<_> =
        with_verdict(&report, "equal").into_iter().filter(|object| object["kind"] == "project_logs").collect();
    ensure!(logs.len() == OBJECTS && logs.iter().all(|object| object["restored_rows"] == 3), "{report}");
    let set = with_verdict(&report, "equal").into_iter().find(|object| object["id"] == json!(dataset));
    ensure!(set.is_some_and(|set| set["restored_rows"] == 2 && set["name"] == "set"), "{report}");
    ensure!(with_verdict(&report, "changed_since").is_empty() && report["holds"] == true, "{report}");
    ensure!(logs.iter().all(|object| object["restored_newest"] == object["expected_newest"]), "{report}");

    // What happens behind the backup is no difference.
    server_goes_on(&server, &mut rows, &insert)?;
    let (ran, report) = drill(&backup, &server, dir, "busy")?;
    ensure!(ran.success, "{}{}", ran.out, ran.errors);
    ensure!(report["holds"] == true && !with_verdict(&report, "equal").is_empty(), "{report}");

    let other = started(&dir.join("other"), Vec::new())?;
    let mut apart = Rows::new(std::slice::from_ref(&other.url), 1)?;
    apart.write(&other.url, "apart")?;
    create(&data)?;
    let (ran, report) = drill(&backup, &other, dir, "apart")?;
    ensure!(!ran.success && ran.errors.contains("the backup does not hold"), "{}{}", ran.out, ran.errors);
    let lacking = with_verdict(&report, "lacks");
    ensure!(lacking.len() == 1 && lacking[0]["id"] == json!(apart.objects[0]), "{report}");

    let refused = run(&["drill", "restore", "--location", &backup.location], &[("ASSAY_API_KEY", TEST_KEY)], "")?;
    ensure!(!refused.success && refused.errors.contains("backup.key_file"), "{}", refused.errors);
    Ok(())
}

fn server_goes_on(server: &Server, rows: &mut Rows, insert: &str) -> Result<()> {
    rows.write(&server.url, "d")?;
    call(&server.url, "POST", insert, &json!({"events": [{"id": "one", "input": 3}]}))?;
    call(&server.url, "POST", insert, &json!({"events": [{"id": "two", "_object_delete": true}]})).map(drop)
}

#[test]
fn a_drill_says_whether_the_newest_backup_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    rehearsed(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
}
