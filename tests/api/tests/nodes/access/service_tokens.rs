//! Service tokens: the first comes from an administrator, and its actions are a case file of their own.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_test_api::case::{Case, Target};
use assay_test_api::dev::Dev;
use assay_test_api::process::run;
use assay_test_api::server::{Options, Server};
use serde_json::Value;

const CASES: &str = "by_token/service_tokens.json";
/// Name from a first start.
const ORGANIZATION: &str = "default";

fn admin(data_dir: &Path, words: &[&str]) -> Result<Value> {
    let place = ["--data-dir", data_dir.to_str().context("a path that is text")?];
    run(&[["admin"].as_slice(), words, &place].concat(), &[], "")?.json().with_context(|| words.join(" "))
}

/// Makes an account through a node's socket and runs the case with its token; then takes the token away.
fn hold(urls: Vec<String>, data_dir: &Path) -> Result<()> {
    let made = admin(data_dir, &["create-service-account", "robot", "--organization", ORGANIZATION])?;
    let token = made["service_token"].as_str().context("a token")?.to_owned();
    ensure!(token.starts_with("bt-st-"), "the token begins otherwise");
    let account = made["email"].as_str().context("an address")?;
    let words = ["create-service-token", "second", "--organization", ORGANIZATION, "--account", account];
    let second = admin(data_dir, &words)?;
    let id = second["id"].as_str().context("an id")?;
    let listed = admin(data_dir, &["service-tokens", "--organization", ORGANIZATION])?;
    ensure!(listed.as_array().map(Vec::len) == Some(2) && !listed.to_string().contains(&token), "{listed}");
    ensure!(admin(data_dir, &["delete-service-token", id])?["deleted_at"].is_string(), "it was deleted");

    let folder = std::env::var("CARGO_MANIFEST_DIR").context("cargo says where this crate is")?;
    let case = Case::read(&Path::new(&folder).join(CASES))?;
    let verdict = case.run("by_token", &Target { urls, key: token, run: "1".into() });
    ensure!(verdict.failures.is_empty(), "{}", verdict.failures.join("\n\n"));
    println!("{} steps hold", verdict.steps);
    Ok(())
}

#[test]
fn a_service_token_does_what_its_account_may() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options::new(&dir.path().join("data"));
    let server = Server::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let held = hold(vec![server.url.clone()], &options.data_dir);
    held.unwrap_or_else(|error| panic!("{error:#}\nthe server said:\n{}", server.log()));
}

#[test]
fn a_service_token_does_what_its_account_may_on_three_nodes_in_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start(&data).unwrap_or_else(|error| panic!("{error:#}"));
    let held = hold(dev.urls.clone(), &data.join("node-2"));
    held.unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
}
