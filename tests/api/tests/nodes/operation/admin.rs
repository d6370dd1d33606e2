//! `assay cluster` through the administrators' listeners of three nodes: same results as on the machine itself.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::http::{Request, send};
use assay_test_api::process::{Ran, run};
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

/// Default directory, in which `assay cluster` finds no node.
const NOWHERE: &str = "/nonexistent";

struct AdminListener<'a> {
    url: &'a str,
    token: PathBuf,
}

impl AdminListener<'_> {
    fn cluster(&self, words: &[&str]) -> Result<Ran> {
        let token = self.token.to_str().context("a path that is text")?;
        let place = ["--admin", self.url, "--admin-token-file", token, "--data-dir", NOWHERE];
        run(&[["cluster"].as_slice(), words, &place].concat(), &[], "")
    }

    fn done(&self, words: &[&str]) -> Result<Value> {
        let ran = self.cluster(&[words, &["--json"]].concat())?;
        ran.json().with_context(|| words.join(" "))
    }

    fn refused(&self, words: &[&str]) -> Result<String> {
        let ran = self.cluster(words)?;
        ensure!(!ran.success, "{words:?} was done: {}", ran.out);
        Ok(ran.errors)
    }

    fn bearer(&self) -> Result<String> {
        Ok(format!("Bearer {}", std::fs::read_to_string(&self.token)?.trim()))
    }
}

fn token_of(dir: &Path, node: usize) -> PathBuf {
    dir.join(format!("node-{node}/admin.token"))
}

fn status_of(url: &str, target: &str, bearer: &str) -> Result<(u16, String)> {
    let headers = vec![("authorization".into(), bearer.to_owned())];
    let answer = send(url, &Request { method: "GET".into(), target: target.into(), headers, ..Request::default() })?;
    Ok((answer.status, answer.text()))
}

fn node_in(status: &Value, node: u64) -> Result<&Value> {
    let nodes = status["nodes"].as_array().context("nodes")?;
    nodes.iter().find(|found| found["id"] == node).with_context(|| format!("no node {node} in {status}"))
}

/// Tests who may use which listener.
fn doors(dev: &Dev, dir: &Path, listeners: &[AdminListener<'_>]) -> Result<()> {
    for (listener, node) in listeners.iter().zip(1..) {
        let mode = std::fs::metadata(&listener.token)?.permissions().mode() & 0o777;
        ensure!(mode == 0o600, "the token of node {node} has mode {mode:o}");
        let (status, text) = status_of(listener.url, "/cluster/status", &listener.bearer()?)?;
        ensure!(status == 200 && serde_json::from_str::<Value>(&text)?["node"] == node, "{status}: {text}");
        let (status, text) = status_of(listener.url, "/cluster/status", &format!("Bearer {}", dev.key))?;
        ensure!(status == 401 && text.contains("API keys are not accepted here"), "{status}: {text}");
        let (status, text) = status_of(&dev.urls[node - 1], "/v1/project", &listener.bearer()?)?;
        ensure!(status == 401, "the API takes the token of administrators: {status}: {text}");
    }
    let other = AdminListener { url: listeners[1].url, token: token_of(dir, 1) };
    let why = other.refused(&["status"])?;
    ensure!(why.contains("not the administrators' token of this node") && why.contains(other.url), "{why}");
    let mut by_variable = vec!["cluster", "status", "--json", "--data-dir", NOWHERE];
    let token = std::fs::read_to_string(&listeners[1].token)?;
    let variables = [("ASSAY_ADMIN_URL", listeners[1].url), ("ASSAY_ADMIN_TOKEN", token.trim())];
    ensure!(run(&by_variable, &variables, "")?.json()?["node"] == 2, "by variables");
    by_variable[4] = dir.to_str().context("a path that is text")?;
    let why = run(&by_variable, &variables[..1], "")?.errors;
    ensure!(why.contains("--admin-token-file") && why.contains("ASSAY_ADMIN_TOKEN"), "{why}");
    Ok(())
}

fn operations(dir: &Path, listeners: &[AdminListener<'_>]) -> Result<()> {
    let [first, second, _] = listeners else { anyhow::bail!("three nodes") };
    let here = dir.join("node-2");
    let by_socket =
        run(&["cluster", "status", "--json", "--data-dir", here.to_str().context("text")?], &[], "")?.json()?;
    let status = second.done(&["status"])?;
    ensure!(status["cluster"] == by_socket["cluster"] && status["node"] == 2, "{status}");
    ensure!(status["quorum"] == true && status["settled"] == true, "{status}");

    let drained = json!({"done": "node 3 leads no groups and may be stopped"});
    for _ in 0..2 {
        ensure!(first.done(&["drain", "3"])? == drained, "a drain, and the same once more");
    }
    let status = second.done(&["status"])?;
    let third = node_in(&status, 3)?;
    ensure!(third["state"] == "draining" && third["leads"] == 0, "{third}");
    for _ in 0..2 {
        ensure!(first.done(&["undrain", "3"])? == json!({"done": "node 3 may lead again"}), "an undrain");
    }
    let settled = second.done(&["rebalance"])?;
    ensure!(settled["settled"] == true && node_in(&settled, 3)?["state"] == "active", "{settled}");

    ensure!(first.refused(&["drain", "9"])?.contains("there is no node 9 in this cluster"), "a node that is not there");
    ensure!(first.refused(&["replace", "3", "9"])?.contains("there is no node 9"), "a node that is not there");
    let token = first.done(&["token", "--minutes", "1"])?;
    ensure!(token["token"].as_str().is_some_and(|token| token.len() > 100), "{token}");
    for (words, name) in [(vec!["recover"], "recover"), (vec!["init", "--peer-address", "127.0.0.1:1"], "init")] {
        let why = first.refused(&words)?;
        ensure!(why.contains(&format!("`{name}` works on the data directory")), "{why}");
    }
    let headers = vec![("authorization".to_owned(), first.bearer()?)];
    let request = Request { method: "POST".into(), target: "/cluster/rebalance".into(), headers, ..Request::default() };
    let said = send(first.url, &request)?.text();
    let last: Value = serde_json::from_str(said.lines().last().context("a line")?)?;
    ensure!(last["settled"] == true, "{said}");
    Ok(())
}

#[test]
fn a_cluster_is_run_through_the_listeners_of_its_administrators() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev =
        Dev::start_with(&data, &[("ASSAY_ADMIN_LISTEN", "127.0.0.1:0")]).unwrap_or_else(|error| panic!("{error:#}"));
    let listener = |node: usize| AdminListener { url: &dev.admin_urls[node - 1], token: token_of(&data, node) };
    let listeners: Vec<AdminListener<'_>> = (1..=NODES).map(listener).collect();
    let held = doors(&dev, &data, &listeners).and_then(|()| operations(&data, &listeners));
    held.unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
}

/// A self-signed pair for `localhost`, of no use anywhere else.
const PAIR: &str = "../../node/http/tests/data/first";

#[test]
fn over_tls_the_listener_is_known_by_its_certificate() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
    let pair = Path::new(&folder).join(PAIR);
    let (certificate, key) = (pair.with_extension("crt"), pair.with_extension("key"));
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new(&dir.path().join("data"));
    let settings = ["admin.listen=127.0.0.1:0".into(), format!("admin.tls.certificates={}", certificate.display())];
    options.settings = settings.into_iter().chain([format!("admin.tls.private_key={}", key.display())]).collect();
    let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let url = server.admin_url.clone().expect("a listener");
    let port = url.strip_prefix("https://127.0.0.1:").expect("https on this machine");
    let asked = |url: &str, more: &[&str]| {
        let data = options.data_dir.to_str().expect("a path that is text");
        let ran = run(&[&["cluster", "status", "--json", "--data-dir", data, "--admin", url], more].concat(), &[], "");
        ran.unwrap_or_else(|error| panic!("{error:#}"))
    };
    let named = format!("https://localhost:{port}");
    let trusted = ["--admin-ca", certificate.to_str().expect("a path that is text")];
    let status = asked(&named, &trusted).json().unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!((&status["node"], &status["settled"]), (&json!(1), &json!(true)));
    let refused = |url: &str, more: &[&str]| {
        let ran = asked(url, more);
        assert!(!ran.success, "{}", ran.out);
        ran.errors
    };
    assert!(refused(&named, &[]).contains("--admin-ca"), "nothing is trusted unseen");
    assert!(refused(&url, &trusted).contains("certificate"), "it is not made out to this name");
    let plain = format!("http://127.0.0.1:{port}");
    assert!(refused(&plain, &[]).contains(&plain), "it speaks no plain text");
    assert!(server.stop().is_ok_and(|status| status.success()));
}

#[test]
fn a_listener_that_others_could_listen_to_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new(&dir.path().join("data"));
    let mut refused = |settings: &[&str]| {
        options.settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Server::refusal(&options).unwrap_or_else(|error| panic!("{settings:?}: {error:#}"))
    };
    let open = refused(&["admin.listen=0.0.0.0:0"]);
    assert!(
        open.contains("admin.listen is `0.0.0.0:0`") && open.contains("the token would travel in plain text"),
        "{open}"
    );
    assert!(open.contains("admin.tls.certificates"), "{open}");
    let files = ["admin.listen=0.0.0.0:0", "admin.tls.certificates=/none.crt", "admin.tls.private_key=/none.key"];
    assert!(refused(&files).contains("/none.crt"), "files that are not there");
    assert!(refused(&["admin.token_file=/x"]).contains("have no effect without admin.listen"));
    assert!(refused(&["admin.listen=127.0.0.1:0", "admin.token_file=/none"]).contains("the file /none does not exist"));
}
