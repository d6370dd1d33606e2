//! Hardening: data that a node reveals to others on its machine, to browsers, and to a holder of a copy of its
//! directory.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process::{Process, START_MAX, STOP_MAX, command, program, run};
use assay_test_api::search::Texts;
use assay_test_api::server::ready;
use serde_json::{Value, json};

const KEY: &str = "sk-hardening-00000000000000000000000000000000";
/// Master key as given by an operator, outside of the data directory.
const MASTER_KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";

/// A node whose secrets are all in its environment.
fn start(data: &Path) -> Result<(Process, String)> {
    let mut command = command(&program()?);
    command.env("ASSAY_API_KEY", KEY).env("ASSAY_MASTER_KEY", MASTER_KEY);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    let mut process = Process::start(&mut command, &data.with_extension("log"))?;
    let url = ready(&mut process)?.url;
    Ok((process, url))
}

fn ask(url: &str, method: &str, target: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Result<HttpResponse> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (method, target, body) = (method.into(), target.into(), body.map(<[u8]>::to_vec));
    send(url, &Request { method, target, headers, body, declared_length: None })
}

fn called(url: &str, method: &str, target: &str, body: &Value) -> Result<Value> {
    let authorization = format!("Bearer {KEY}");
    let answer = ask(url, method, target, &[("authorization", &authorization)], Some(body.to_string().as_bytes()))?;
    ensure!(answer.status == 200, "{method} {target}: {}: {}", answer.status, answer.text());
    Ok(serde_json::from_str(&answer.text())?)
}

/// Every file and directory that others than its owner could read, write or enter.
fn open_to_others(dir: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let meta = std::fs::symlink_metadata(&path)?;
        if meta.permissions().mode() & 0o077 != 0 {
            found.push(format!("{} {:o}", path.display(), meta.permissions().mode() & 0o777));
        }
        if meta.is_dir() {
            open_to_others(&path, found)?;
        }
    }
    Ok(())
}

/// Regression: secrets stayed in the environment for the life of the process, files were readable by all, and core
/// files contained the memory.
fn gives_nothing_to_its_machine(process: &Process, data: &Path) -> Result<()> {
    let proc = Path::new("/proc").join(process.id().to_string());
    if proc.exists() {
        let environment = String::from_utf8_lossy(&std::fs::read(proc.join("environ"))?).into_owned();
        for secret in [KEY, MASTER_KEY, "ASSAY_API_KEY", "ASSAY_MASTER_KEY"] {
            ensure!(!environment.contains(secret), "{secret} is in {environment}");
        }
        let line = std::fs::read(proc.join("cmdline"))?;
        ensure!(line.windows(5).any(|part| part == b"serve"), "another process has its number");
        let limits = std::fs::read_to_string(proc.join("limits"))?;
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).context("a limit")?;
        ensure!(core.split_whitespace().nth(4) == Some("0"), "{core}");
    }
    let mut found = Vec::new();
    open_to_others(data, &mut found)?;
    ensure!(found.is_empty(), "{found:#?}");
    let mode = std::fs::metadata(data)?.permissions().mode() & 0o777;
    ensure!(mode == 0o700, "{mode:o}");
    Ok(())
}

/// Regression: pages of any origin, and clients of a proxy on the same machine, could read the metrics.
fn shows_metrics_to_programs_alone(url: &str) -> Result<()> {
    let asked = |headers: &[(&str, &str)]| ask(url, "GET", "/metrics", headers, None);
    ensure!(asked(&[])?.status == 200);
    for headers in [
        &[("origin", "https://evil.example")][..],
        &[("x-forwarded-proto", "https")],
        &[("x-real-ip", "203.0.113.7")],
        &[("via", "1.1 proxy")],
    ] {
        let answer = asked(headers)?;
        ensure!(answer.status == 404, "{headers:?}: {}", answer.status);
        ensure!(answer.header("access-control-allow-origin").is_none(), "{headers:?}");
    }
    let preflight = [("origin", "https://evil.example"), ("access-control-request-private-network", "true")];
    let answer = ask(url, "OPTIONS", "/metrics", &preflight, None)?;
    ensure!(answer.header("access-control-allow-private-network").is_none(), "a page may reach metrics");
    Ok(())
}

/// A copy of the directory held the key that node certificates are made with, in plain text.
fn keeps_no_key_of_the_cluster_in_plain_text(data: &Path) -> Result<()> {
    let found = Texts::new(["BEGIN PRIVATE KEY", "BEGIN CERTIFICATE"]).below(data);
    let own = |place: &&String| !place.contains("/tls/");
    ensure!(found.iter().any(|place| place.contains("BEGIN CERTIFICATE")), "the search does not see: {found:?}");
    let found: Vec<&String> = found.iter().filter(own).filter(|place| place.contains("PRIVATE KEY")).collect();
    ensure!(found.is_empty(), "{found:#?}");
    Ok(())
}

fn path(address: &Value) -> Result<String> {
    let address = address.as_str().context("an address")?;
    let path = address.split_once("//").and_then(|(_, rest)| rest.split_once('/')).context("a path")?.1;
    Ok(format!("/{path}"))
}

/// Regression: a signed address stayed valid after a rotation by an operator.
fn forgets_addresses_with_a_rotation(url: &str, data: &Path) -> Result<()> {
    let file = json!({"key": "5b6f2c1e-8f4e-4a57-9f2b-2f8a5f1c0001", "filename": "f", "content_type": "text/plain", "org_id": ""});
    let put = |address: &str| ask(url, "PUT", address, &[], Some(b"bytes"));
    let before = path(&called(url, "POST", "/attachment", &file)?["signedUrl"])?;
    ensure!(put(&before)?.status == 200);
    let words = ["admin", "rotate-secrets", "--data-dir", data.to_str().context("a path that is text")?];
    let deadline = std::time::Instant::now() + START_MAX;
    let said = loop {
        let ran = run(&words, &[], "")?;
        match ran.success {
            true => break ran.json()?,
            // The node states a moment after its start that it has the key.
            false => ensure!(std::time::Instant::now() < deadline, "{}", ran.errors),
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    ensure!(said["signing_key"] == "rotated", "{said}");
    let answer = put(&before)?;
    ensure!(answer.status == 401, "{}: {}", answer.status, answer.text());
    let after = path(&called(url, "POST", "/attachment", &file)?["signedUrl"])?;
    ensure!(put(&after)?.status == 200);
    Ok(())
}

#[test]
fn a_node_gives_nothing_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let looked = || -> Result<()> {
        let (mut process, url) = start(&data)?;
        gives_nothing_to_its_machine(&process, &data)?;
        shows_metrics_to_programs_alone(&url)?;
        forgets_addresses_with_a_rotation(&url, &data)?;
        let ready = ask(&url, "GET", "/readyz", &[], None)?;
        ensure!(ready.status == 200, "{}", ready.text());
        ensure!(process.stop(STOP_MAX)?.success());
        keeps_no_key_of_the_cluster_in_plain_text(&data)
    };
    looked().unwrap_or_else(|error| panic!("{error:#}"));
}
