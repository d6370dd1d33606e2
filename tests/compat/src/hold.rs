//! Tests the current program against the data of a release: it reads the existing data, continues to write, and still
//! reads the older versions after sealing.

use std::path::Path;

use anyhow::{Context, Result};
use assay_test_api::case::{Case, Target, Verdict};
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

use crate::doctor;
use crate::release::{KEY, Release};
use crate::write::PEER;

/// Text that the current program writes into every object.
const WRITTEN_NOW: &str = "written by a later program";
/// Setting by which writes are in a segment at once, beside the existing ones.
const SEAL_AT_ONCE: &str = "store.seal_age_seconds=0";

/// Returns the complaints, or an error if the test could not run. `place` is an empty directory.
pub fn complaints(release: &Release, place: &Path) -> Result<Vec<String>> {
    let data = release.unpack(place)?;
    let reads = release.reads()?;
    doctor::examine(&data).context("as it was left")?;

    let mut options = Options { key: Some(KEY.into()), ..Options::new(&data) };
    options.settings = PEER.map(str::to_owned).to_vec();
    let server = Server::start(&options)?;
    let mut found = run("as it was left", &reads, &server).failures;
    server.stop()?;

    options.settings.push(SEAL_AT_ONCE.into());
    let server = Server::start(&options)?;
    found.extend(run("written on", &written_on(&reads)?, &server).failures);
    found.extend(run("older versions behind that", &of_older_versions(&reads)?, &server).failures);
    server.stop()?;
    doctor::examine(&data).context("after today's program")?;
    Ok(found)
}

fn run(when: &str, case: &Case, server: &Server) -> Verdict {
    let target = Target { urls: vec![server.url.clone()], key: server.key.clone(), run: String::new() };
    case.run(when, &target)
}

/// Every object that is there takes a row, gives it back, and is sealed with it.
fn written_on(reads: &Case) -> Result<Case> {
    let objects: Vec<&str> = reads
        .steps
        .iter()
        .filter(|step| step.expect.status == json!(200) && version(&step.body).is_none())
        .filter_map(|step| step.path.strip_suffix("/fetch"))
        .collect();
    anyhow::ensure!(!objects.is_empty(), "no object is read");
    let mut steps = Vec::new();
    for object in objects {
        let row = json!({"id": WRITTEN_NOW, "input": {"by": "now"}});
        steps.push(json!({"method": "POST", "path": format!("{object}/insert"), "body": {"events": [row]}, "expect": {"status": 200}}));
        steps.push(json!({
            "method": "POST", "path": format!("{object}/fetch"), "body": {"limit": 1},
            "expect": {"status": 200, "json": {"events": [row]}},
        }));
    }
    steps.push(json!({
        "note": "sealed", "method": "GET", "path": "/metrics", "within_seconds": 60,
        "expect": {"status": 200, "text": "$contains:assay_memory_table_rows 0\n"},
    }));
    Ok(serde_json::from_value(json!({"about": "a later program writes on", "steps": steps}))?)
}

fn of_older_versions(reads: &Case) -> Result<Case> {
    let steps: Vec<_> = reads.steps.iter().filter(|step| version(&step.body).is_some()).cloned().collect();
    anyhow::ensure!(!steps.is_empty(), "no older version is read");
    Ok(Case { about: reads.about.clone(), steps })
}

fn version(body: &Option<Value>) -> Option<&str> {
    body.as_ref()?.get("version")?.as_str()
}
