//! Browser tests of the console from `node/console/tests`, against one node and three nodes.
//!
//! If the browser or the packages are unavailable, each test reports "not covered" and passes, unless
//! `ASSAY_REQUIRE=all`.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_test_api::dev::Dev;
use assay_test_api::process::run;
use assay_test_api::server::{Options, Server};
use assay_test_clients::kept::said;
use assay_test_clients::suite::{Served, covered, on_nodes_with, on_one_node_with};

/// Program that installs the packages of the front end.
const INSTALL: &str = "../../.ci/console";
const FRONT_END: &str = "../../node/console";
/// Tests that depend on the server, and have to pass on three nodes as on one.
const FLOWS: &str = "tests/flows/";
/// Tests of user flows, and measurements.
const USES: [&str; 5] = [FLOWS, "tests/oidc/", "tests/budgets", "tests/security", "tests/speed"];
/// Tests that visit every screen.
const VISITS: [&str; 2] = ["tests/axe", "tests/corpus"];
/// Value of the setting `egress.allow` that lets nodes call the model servers of the flows.
const EGRESS: &str = r#"[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models", "mcp", "media"]}]"#;
/// Setting that makes the owner an operator, who may see the cluster screen.
const OPERATORS: &str = r#"console.operators=["owner@localhost"]"#;
/// E-mail address of a user who belongs to another organization.
const STRANGER: &str = "olga@other.example";
/// Path of headless Chromium, which opens pages in half the time.
const BROWSER: &str = "/usr/bin/chromium-headless-shell";
/// Upper bound of the number of bytes kept from the end of the output.
const REPORT_BYTES_MAX: usize = 64 << 10;

fn below_this_crate(path: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join(path)
}

/// Installs the packages of the front end, and checks that the browser exists.
fn installed() -> Result<PathBuf, String> {
    if !Path::new(BROWSER).exists() {
        return Err(format!("there is no browser at {BROWSER}: install the package chromium-headless-shell"));
    }
    let output = Command::new("bash").arg(below_this_crate(INSTALL)).arg("packages").output();
    let output = output.map_err(|error| format!("bash does not run: {error}"))?;
    match output.status.success() {
        true => Ok(below_this_crate(FRONT_END)),
        false => Err(said(&output)),
    }
}

/// Runs an administrator command on a data directory.
fn admin(data_dir: &Path, words: &[&str]) -> serde_json::Value {
    let place = data_dir.to_str().expect("a path that is text");
    let words: Vec<&str> = ["admin"].iter().chain(words).chain(&["--data-dir", place]).copied().collect();
    run(&words, &[], "").and_then(|output| output.json()).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Creates a service account that owns the organization, and therefore may create user accounts.
fn service_token(data_dir: &Path) -> String {
    let made = admin(data_dir, &["create-service-account", "flows", "--organization", "default"]);
    made["service_token"].as_str().expect("a token").to_owned()
}

/// Returns a free port.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

fn started(options: &Options) -> Server {
    Server::start(options).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Runs a script of the front end, and returns its output if it fails.
fn script(front_end: &Path, words: &[&str], environment: &[(&str, String)]) -> String {
    let output = Command::new("npm")
        .args(["run", "--silent"])
        .args(words)
        .current_dir(front_end)
        .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
        .output()
        .expect("npm runs");
    let report = said(&output);
    let begin = report.ceil_char_boundary(report.len().saturating_sub(REPORT_BYTES_MAX));
    println!("{}", &report[begin..]);
    if output.status.success() { String::new() } else { format!("{}\n{}", output.status, &report[begin..]) }
}

/// Runs flows against a server, with a second server that is unused, and returns the failures.
///
/// `more` contains additional environment variables of the flows.
fn failures(front_end: &Path, served: &Served, words: &[&str], more: &[(&str, String)]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let fresh = started(&Options::new(&dir.path().join("fresh")));
    admin(&served.data_dir, &["create-organization", "other", "--owner", STRANGER]);
    let mut environment = vec![
        ("ASSAY_FLOWS_URLS", served.url.clone()),
        ("ASSAY_FLOWS_KEY", served.key.clone()),
        ("ASSAY_FLOWS_SERVICE_TOKEN", service_token(&served.data_dir)),
        ("ASSAY_FLOWS_STRANGER", STRANGER.to_owned()),
        ("ASSAY_FLOWS_FRESH_URL", fresh.url.clone()),
        ("ASSAY_FLOWS_FRESH_KEY", fresh.key.clone()),
    ];
    environment.extend_from_slice(more);
    script(front_end, words, &environment)
}

/// Starts a server that uses the OpenID provider of the flows, and returns it with the variables of the flows.
fn server_with_provider(dir: &Path) -> (Server, Vec<(&'static str, String)>) {
    let (url, issuer) = (free_port(), free_port());
    let [url, issuer] = [url, issuer].map(|port| format!("http://127.0.0.1:{port}"));
    let settings =
        vec![format!("http.public_url={url}"), format!("oidc.issuer={issuer}"), "oidc.client_id=assay".to_owned()];
    let listen = url.trim_start_matches("http://").to_owned();
    let server = started(&Options { settings, listen, ..Options::new(&dir.join("oidc")) });
    let variables = vec![
        ("ASSAY_FLOWS_OIDC_URL", url),
        ("ASSAY_FLOWS_OIDC_ISSUER", issuer),
        ("ASSAY_FLOWS_OIDC_KEY", server.key.clone()),
    ];
    (server, variables)
}

#[test]
#[ignore = "takes minutes of a browser; .ci/run runs it"]
fn people_use_the_console_of_one_node() {
    let Some(front_end) = covered("the console in a browser", installed()) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (_server, variables) = server_with_provider(dir.path());
    on_one_node_with(&[&format!("egress.allow={EGRESS}")], |served| {
        failures(&front_end, served, &[&["flows", "--"], &USES[..]].concat(), &variables)
    });
}

/// Tests accessibility and hostile texts.
#[test]
#[ignore = "takes minutes of a browser; .ci/run runs it"]
fn every_screen_of_the_console_is_visited() {
    let Some(front_end) = covered("the console in a browser", installed()) else { return };
    on_one_node_with(&[OPERATORS], |served| {
        failures(&front_end, served, &[&["flows", "--"], &VISITS[..]].concat(), &[])
    });
}

#[test]
#[ignore = "takes minutes of a browser; .ci/run runs it"]
fn people_use_the_console_of_three_nodes() {
    let Some(front_end) = covered("the console in a browser", installed()) else { return };
    on_nodes_with(3, &[("ASSAY_EGRESS_ALLOW", EGRESS)], |served| {
        failures(&front_end, served, &["flows", "--", FLOWS], &[])
    });
}

#[test]
#[ignore = "takes minutes of a browser; .ci/run runs it"]
fn a_lost_node_is_shown_and_the_others_go_on() {
    let Some(front_end) = covered("the console in a browser", installed()) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Dev::start(&dir.path().join("cluster")).unwrap_or_else(|error| panic!("{error:#}"));
    let variables = [
        ("ASSAY_FLOWS_CLUSTER_URLS", cluster.urls.join(",")),
        ("ASSAY_FLOWS_CLUSTER_KEY", cluster.key.clone()),
        ("ASSAY_FLOWS_KILL", format!("kill -KILL {}", cluster.processes()[2])),
    ];
    on_one_node_with(&[], |served| failures(&front_end, served, &["flows", "--", "tests/cluster/"], &variables));
}

/// Tests that the same sources also run on React, in case the young view library is abandoned.
#[test]
#[ignore = "takes minutes of a browser; .ci/run runs it"]
fn ten_flows_run_on_react() {
    let Some(front_end) = covered("the console in a browser", installed()) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let built = [("ASSAY_REACT_DIR", dir.path().join("react").to_str().expect("a path that is text").to_owned())];
    let failed = script(&front_end, &["build:react"], &built);
    assert!(failed.is_empty(), "{failed}");
    on_one_node_with(&[], |served| failures(&front_end, served, &["flows:react"], &built));
}
