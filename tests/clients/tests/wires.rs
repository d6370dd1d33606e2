//! Unmodified SDKs of Langfuse and Phoenix with only their environment changed: on one node, and on three with another
//! node at each request. If a language or a package index is unavailable this reports "not covered" and passes, unless
//! ASSAY_REQUIRE=all.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use assay_test_api::dev::NODES;
use assay_test_api::process;
use assay_test_api::rows::call as api;
use assay_test_clients::javascript::{self, Environment};
use assay_test_clients::kept::ends_well;
use assay_test_clients::python::{made, run_with};
use assay_test_clients::suite::{Job, Served, at_once, covered, on_nodes, on_one_node};
use serde_json::json;

const CURRENT: &str = include_str!("../python/wires.lock");
const EARLIER: &str = include_str!("../python/wires_earlier.lock");
const PACKAGE: &str = include_str!("../javascript/langfuse/package.json");
const LOCK: &str = include_str!("../javascript/langfuse/package-lock.json");

fn environment(name: &str, lock: &str) -> Result<PathBuf, String> {
    made(name, lock).map_err(|error| format!("{error:#}"))
}

/// Creates a project with a pair of keys, and returns the environment of Langfuse's SDK.
fn pair(place: &Served, name: &str) -> Result<Vec<(&'static str, String)>> {
    let project = api(&place.url, "POST", "/v1/project", &json!({ "name": name }))?;
    let project = project["id"].as_str().context("an id")?.to_owned();
    let data_dir = place.data_dir.to_str().context("a path that is text")?;
    let words =
        ["admin", "create-langfuse-key", name, "--organization", "default", "--project", name, "--data-dir", data_dir];
    let made = process::run(&words, &[], "")?.json()?;
    let text = |key: &str| made[key].as_str().map(str::to_owned).context("a key");
    Ok(vec![
        ("LANGFUSE_PUBLIC_KEY", text("public_key")?),
        ("LANGFUSE_SECRET_KEY", text("secret_key")?),
        ("LANGFUSE_BASE_URL", place.url.clone()),
        ("LANGFUSE_HOST", place.url.clone()),
        ("ASSAY_KEY", place.key.clone()),
        ("ASSAY_PROJECT", project),
    ])
}

fn langfuse(python: &Path, place: &Served, name: &str) -> Result<()> {
    let environment = pair(place, name)?;
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    run_with(python, "langfuse_sdk.py", name, (&place.url, &place.key), &environment)
}

fn of_javascript(node: &Environment, place: &Served, name: &str) -> Result<()> {
    let home = node.home()?;
    let mut command = home.command("langfuse.mjs");
    ends_well("langfuse.mjs", command.arg(name).envs(pair(place, name)?))
}

fn phoenix(python: &Path, place: &Served) -> Result<()> {
    let otlp = place.otlp_urls.join(",");
    let environment = [("ASSAY_URL", place.url.as_str()), ("PHOENIX_API_KEY", &place.key), ("ASSAY_OTLP_URLS", &otlp)];
    run_with(python, "phoenix_otel.py", "phoenix", (&place.url, &place.key), &environment)
}

fn failures((python, earlier, node): (&Path, &Path, &Environment), place: &Served) -> String {
    let jobs: Vec<Job<'_>> = vec![
        Box::new(|| langfuse(python, place, "current")),
        Box::new(|| langfuse(earlier, place, "earlier")),
        Box::new(|| of_javascript(node, place, "javascript")),
        Box::new(|| phoenix(python, place)),
    ];
    at_once(&jobs)
}

#[test]
fn applications_of_langfuse_and_phoenix_move_by_their_environment() {
    let Some(python) = covered("Langfuse's SDK", environment("wires", CURRENT)) else { return };
    let Some(earlier) = covered("Langfuse's SDK", environment("wires-earlier", EARLIER)) else { return };
    let node = javascript::made("wires-javascript", PACKAGE, LOCK).map_err(|error| format!("{error:#}"));
    let Some(node) = covered("Langfuse's SDK for JavaScript", node) else { return };
    on_one_node(|place| failures((&python, &earlier, &node), place));
    on_nodes(NODES, |place| failures((&python, &earlier, &node), place));
}
