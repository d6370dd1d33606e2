//! The README's quickstart, as it is printed: Python and TypeScript log a trace and run an evaluation, and the query reads
//! the trace. Only the address and the key are those of the test's node. If a language is unavailable this reports "not
//! covered" and passes, unless ASSAY_REQUIRE=all.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use assay_test_clients::suite::{Served, covered, on_one_node};
use assay_test_clients::{javascript, python};
use serde_json::Value;

const README_ADDRESS: &str = "http://127.0.0.1:8000";
/// Beginning of the fenced shell block with the query.
const QUERY: &str = "curl -s ";

/// Returns the README's fenced blocks in a language.
fn blocks(language: &str) -> Vec<String> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
    let readme = std::fs::read_to_string(Path::new(&folder).join("../../README.md")).expect("a README");
    let fence = format!("```{language}\n");
    let parts = readme.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next());
    parts.map(|block| format!("{block}\n")).collect()
}

fn only(language: &str) -> String {
    let found = blocks(language);
    assert_eq!(found.len(), 1, "the README has one block in {language}");
    found.into_iter().next().unwrap_or_default()
}

fn run_python(python: &Path, place: &Served) -> Result<()> {
    let home = tempfile::tempdir()?;
    let script = home.path().join("quickstart.py");
    std::fs::write(&script, only("python"))?;
    let output = python::command(python, home.path(), &place.url, &place.key)
        .env("BRAINTRUST_API_URL", &place.url)
        .arg(&script)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn run_typescript(javascript: &javascript::Environment, place: &Served) -> Result<()> {
    let home = javascript.home()?;
    home.add("quickstart.mjs", &only("typescript"))?;
    let both = [("BRAINTRUST_API_URL", place.url.as_str())];
    home.run("quickstart.mjs", "quickstart", (&place.url, &place.key), &both)
}

/// Runs the README's query, and returns the rows of its answer.
fn rows(place: &Served) -> Result<Vec<Value>> {
    let block = blocks("sh").into_iter().find(|block| block.starts_with(QUERY)).context("the README has no query")?;
    ensure!(block.contains(README_ADDRESS), "{block}");
    let block = block.replace(README_ADDRESS, &place.url);
    let output = Command::new("sh").args(["-ec", &block]).env("BRAINTRUST_API_KEY", &place.key).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value =
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stdout).into_owned())?;
    Ok(answer["data"].as_array().context("no rows")?.clone())
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn the_quickstart_works_as_it_is_printed() {
    let python = covered("the Python SDK", python::environment());
    let javascript = covered("the JavaScript SDK", javascript::environment());
    on_one_node(|place| {
        let mut failures = Vec::new();
        let mut check = |name: &str, result: Result<()>| {
            if let Err(error) = result {
                failures.push(format!("{name}: {error:#}"));
            }
        };
        let ran = usize::from(python.is_some()) + usize::from(javascript.is_some());
        if let Some(python) = python {
            check("Python", run_python(python, place));
        }
        if let Some(javascript) = javascript {
            check("TypeScript", run_typescript(javascript, place));
        }
        check(
            "the query",
            rows(place).and_then(|rows| {
                let logged = rows.iter().filter(|row| row["input"] == "2 + 2" && row["output"] == "4").count();
                ensure!(logged == ran, "{logged} of {ran} traces: {rows:?}");
                Ok(())
            }),
        );
        failures.join("\n")
    });
}
