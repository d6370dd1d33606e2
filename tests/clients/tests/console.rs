//! The console in a real browser, against one node and three: the flows, accessibility and security tests of
//! `node/console/tests`. If the browser or the packages are unavailable this reports "not covered" and passes, unless
//! ASSAY_REQUIRE=all.

use std::path::{Path, PathBuf};
use std::process::Command;

use assay_test_api::process::run;
use assay_test_api::server::{Options, Server};
use assay_test_clients::kept::said;
use assay_test_clients::suite::{Served, covered, on_nodes, on_one_node};

/// Program that installs the packages of the front end.
const INSTALL: &str = "../../.ci/console";
const FRONT_END: &str = "../../node/console";
/// Tests that depend on the server, which three nodes have to serve as one does.
const FLOWS: &str = "tests/flows/";
const BROWSER: &str = "/usr/bin/chromium";
/// Kept bytes from the end of the output.
const REPORT_BYTES_MAX: usize = 64 << 10;

fn below_this_crate(path: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join(path)
}

/// Installs the packages of the front end, and looks for the browser.
fn installed() -> Result<PathBuf, String> {
    if !Path::new(BROWSER).exists() {
        return Err(format!("there is no browser at {BROWSER}: install the package chromium"));
    }
    let output = Command::new("bash").arg(below_this_crate(INSTALL)).arg("packages").output();
    let output = output.map_err(|error| format!("bash does not run: {error}"))?;
    match output.status.success() {
        true => Ok(below_this_crate(FRONT_END)),
        false => Err(said(&output)),
    }
}

/// Makes the account of a service that owns the organization, which may make the accounts of people.
fn service_token(data_dir: &Path) -> String {
    let place = data_dir.to_str().expect("a path that is text");
    let words = ["admin", "create-service-account", "flows", "--organization", "default", "--data-dir", place];
    let made = run(&words, &[], "").and_then(|output| output.json()).unwrap_or_else(|error| panic!("{error:#}"));
    made["service_token"].as_str().expect("a token").to_owned()
}

/// Runs the tests below some paths, all of them if there is none, and returns their output if one fails.
fn failures(front_end: &Path, served: &Served, paths: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let fresh = Server::start(&Options::new(&dir.path().join("fresh"))).unwrap_or_else(|error| panic!("{error:#}"));
    let output = Command::new("npm")
        .args(["run", "--silent", "flows", "--"])
        .args(paths)
        .current_dir(front_end)
        .env("ASSAY_FLOWS_URLS", &served.url)
        .env("ASSAY_FLOWS_KEY", &served.key)
        .env("ASSAY_FLOWS_SERVICE_TOKEN", service_token(&served.data_dir))
        .env("ASSAY_FLOWS_FRESH_URL", &fresh.url)
        .env("ASSAY_FLOWS_FRESH_KEY", &fresh.key)
        .output()
        .expect("npm runs");
    let report = said(&output);
    let begin = report.ceil_char_boundary(report.len().saturating_sub(REPORT_BYTES_MAX));
    println!("{}", &report[begin..]);
    if output.status.success() { String::new() } else { format!("{}\n{}", output.status, &report[begin..]) }
}

#[test]
#[ignore = "takes minutes of a browser; .ci/run runs it"]
fn people_use_the_console_of_one_node() {
    let Some(front_end) = covered("the console in a browser", installed()) else { return };
    on_one_node(|served| failures(&front_end, served, &[]));
}

#[test]
#[ignore = "takes minutes of a browser; .ci/run runs it"]
fn people_use_the_console_of_three_nodes() {
    let Some(front_end) = covered("the console in a browser", installed()) else { return };
    on_nodes(3, |served| failures(&front_end, served, &[FLOWS]));
}
