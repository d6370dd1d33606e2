//! The Python SDK logs, merges, comments and reads back: from one node, and from three, another one at each request.
//! Where Python or the package index is out of reach this says "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::path::Path;

use anyhow::{Context, Result};
use assay_test_clients::installed::not_covered;
use assay_test_clients::python::{Told, environment, run, run_with};
use assay_test_clients::sides::{on_one_node, on_three_nodes_in_turn};

/// Scripts, each with what it is told.
const SCRIPTS: [(&str, Told); 10] = [
    ("spans.py", Told::AppUrl),
    ("spans.py", Told::BothUrls),
    ("experiment.py", Told::AppUrl),
    ("dataset.py", Told::AppUrl),
    ("attachments.py", Told::AppUrl),
    ("exporter.py", Told::AppUrl),
    ("evaluation.py", Told::AppUrl),
    ("prompts.py", Told::AppUrl),
    ("tracing.py", Told::AppUrl),
    ("large_dataset.py", Told::AppUrl),
];

/// With the service token of an owner, which a node's administrator made in this data directory.
fn failures(python: &Path, url: &str, key: &str, data_dir: &Path) -> String {
    let each =
        SCRIPTS.iter().filter_map(|(script, told)| run(python, script, &format!("{told:?}"), url, key, *told).err());
    let generated = service_token(data_dir).and_then(|token| {
        run_with(python, "generated.py", "generated", (url, key), &[("ASSAY_SERVICE_TOKEN", &token)])
    });
    each.chain(generated.err()).map(|error| format!("{error:#}")).collect::<Vec<_>>().join("\n\n")
}

fn service_token(data_dir: &Path) -> Result<String> {
    let place = data_dir.to_str().context("a path that is text")?;
    let words = ["admin", "create-service-account", "robot", "--organization", "default", "--data-dir", place];
    let made = assay_test_api::process::run(&words, &[], "")?.json()?;
    made["service_token"].as_str().map(str::to_owned).context("a token")
}

#[test]
fn the_python_sdk_reads_back_what_it_logged() {
    let Some(python) = python() else { return };
    on_one_node(|url, key, data| failures(python, url, key, data));
}

#[test]
fn the_python_sdk_reads_from_any_of_three_nodes_what_it_logged_to_another() {
    let Some(python) = python() else { return };
    on_three_nodes_in_turn(|url, key, data| failures(python, url, key, data));
}

fn python() -> Option<&'static Path> {
    match environment() {
        Ok(python) => Some(python),
        Err(problem) => {
            not_covered("the Python SDK", &problem);
            None
        }
    }
}
