//! Schemathesis against the server's own document: it generates valid and invalid requests and checks each response. If
//! Python or the package index is unavailable this reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::path::Path;
use std::process::Command;

use assay_test_api::http::{Request, send};
use assay_test_api::server::{Options, Server};
use assay_test_clients::kept::said;
use assay_test_clients::python::{command, folder, made};
use assay_test_clients::suite::covered;

/// Duration; overridden by ASSAY_SCHEMATHESIS_SECONDS.
const SECONDS: &str = "120";
/// Seed; overridden by ASSAY_SCHEMATHESIS_SEED.
const SEED: &str = "1";
/// Concurrent requests. CPython 3.11 has an error in concurrent compilation ("AST constructor recursion depth
/// mismatch"), so that runs with more of them failed.
const WORKERS: &str = "1";
/// Timeout of a request in seconds.
const ANSWER_SECONDS_MAX: &str = "30";
/// Requests that it makes up for one operation, one time through.
const EXAMPLES: &str = "20";
/// Failures after which it stops looking for more.
const FAILURES_MAX: &str = "50";
/// Kept bytes from the end of its output, which has the summary.
const REPORT_BYTES_MAX: usize = 64 << 10;
/// Kept bytes from the beginning of a line, which contains the whole body of a request.
const LINE_BYTES_MAX: usize = 2 << 10;
/// Check that is replaced: a schema cannot express all rules, such as that ids exist, or that one of two parameters is
/// given. The replacement in `python/described.py` accepts refusals by such rules, by their text.
const IN_OTHER_WORDS: &str = "positive_data_acceptance";
/// Paths of streams that go on until their reader leaves.
const WITHOUT_END: &str = "/tail$";
const REQUIREMENTS: &str = include_str!("../python/schemathesis.lock");

#[test]
#[ignore = "takes two minutes; .ci/run runs it"]
fn the_server_does_what_its_document_says() {
    let python = made("schemathesis", REQUIREMENTS).map_err(|problem| format!("{problem:#}"));
    let Some(python) = covered("the API's document against the server", python) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(&Options::new(&dir.path().join("data"))).unwrap_or_else(|error| panic!("{error:#}"));
    let output = schemathesis(&python, dir.path(), &server.url, &server.key).output().expect("schemathesis runs");
    let report = shortened(&said(&output));
    let begin = report.ceil_char_boundary(report.len().saturating_sub(REPORT_BYTES_MAX));
    assert!(server.lives(), "the server died:\n{}\n{}", server.log(), &report[begin..]);
    assert!(output.status.success(), "{}\n{}", output.status, &report[begin..]);
    // It changes and deletes what it finds: had it taken the caller's own rights, most answers had been refusals.
    let headers = vec![("Authorization".into(), format!("Bearer {}", server.key))];
    let body = Some(br#"{"name": "made behind it"}"#.to_vec());
    let make = Request { method: "POST".into(), target: "/v1/project".into(), headers, body, ..Request::default() };
    let answer = send(&server.url, &make).expect("an answer");
    assert_eq!(answer.status, 200, "the caller has lost its rights: {}", answer.text());
    println!("{}", &report[begin..]);
}

fn shortened(report: &str) -> String {
    let cut = |line: &str| format!("{}\n", &line[..line.floor_char_boundary(LINE_BYTES_MAX)]);
    report.lines().map(cut).collect()
}

fn schemathesis(python: &Path, home: &Path, url: &str, key: &str) -> Command {
    let told = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.into());
    let seconds = told("ASSAY_SCHEMATHESIS_SECONDS", SECONDS);
    let seed = told("ASSAY_SCHEMATHESIS_SEED", SEED);
    let mut command = command(python, home, url, key);
    command.env("PYTHONPATH", folder()).env("SCHEMATHESIS_HOOKS", "described");
    command.args(["-m", "schemathesis.cli", "--config-file"]).arg(folder().join("schemathesis.toml"));
    command.args(["run", &format!("{url}/openapi.json"), "--no-color", "--continue-on-failure"]);
    command.args(["--header", &format!("Authorization: Bearer {key}"), "--checks", "all"]);
    command.args(["--exclude-checks", IN_OTHER_WORDS, "--exclude-path-regex", WITHOUT_END]);
    command.args(["--workers", WORKERS, "--max-time", &seconds, "--seed", &seed, "--max-examples", EXAMPLES]);
    command.args(["--request-timeout", ANSWER_SECONDS_MAX, "--max-failures", FAILURES_MAX]);
    command.args(["--generation-database", "none", "--warnings", "off"]);
    command
}
