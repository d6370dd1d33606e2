//! Every case file against one node, against three in turn, or against the servers in `ASSAY_TEST_URLS`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_test_api::case::{Case, Target};
use assay_test_api::dev::Dev;
use assay_test_api::server::{Options, Server};

fn case_files() -> Vec<PathBuf> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
    let entries = std::fs::read_dir(Path::new(&folder).join("cases")).expect("the cases");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a case").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[test]
fn every_case_file_reads() {
    let files = case_files();
    assert!(files.len() > 10, "the case files are here");
    for path in files {
        let case = Case::read(&path).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(!case.about.is_empty() && !case.steps.is_empty(), "{}", path.display());
    }
}

/// Unlike that of any other run.
fn run_now() -> String {
    let run = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock behind 1970").as_nanos();
    format!("{run:x}")
}

/// Runs every case file, or those whose names contain a part of `ASSAY_TEST_CASES=fetch,merge`. `alive` returns an
/// error if the servers failed.
fn all_hold(target: &Target, alive: impl FnOnce() -> Result<(), String>) {
    let only = std::env::var("ASSAY_TEST_CASES").unwrap_or_default();
    let (mut steps, mut failures) = (0, Vec::new());
    for path in case_files() {
        let name = name_of(&path);
        if !only.split(',').any(|part| name.contains(part)) {
            continue;
        }
        let case = Case::read(&path).unwrap_or_else(|error| panic!("{error:#}"));
        let verdict = case.run(&name, target);
        steps += verdict.steps;
        failures.extend(verdict.failures);
    }
    alive().unwrap_or_else(|log| panic!("a server died:\n{log}"));
    assert!(failures.is_empty(), "{} of {steps} steps do not hold\n\n{}\n", failures.len(), failures.join("\n\n"));
    println!("{steps} steps hold");
}

/// Servers that run already are taken as they are: `ASSAY_TEST_URLS=http://a:1,http://b:2 ASSAY_TEST_KEY=sk-..`.
#[test]
fn every_case_holds() {
    if let Ok(urls) = std::env::var("ASSAY_TEST_URLS") {
        let urls = urls.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        let key = std::env::var("ASSAY_TEST_KEY").expect("ASSAY_TEST_KEY goes with ASSAY_TEST_URLS");
        return all_hold(&Target { urls, key, run: run_now() }, || Ok(()));
    }
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(&Options::new(&dir.path().join("data"))).unwrap_or_else(|error| panic!("{error:#}"));
    let target = Target { urls: vec![server.url.clone()], key: server.key.clone(), run: run_now() };
    all_hold(&target, || if server.lives() { Ok(()) } else { Err(server.log()) });
}

/// The same files; each step, and each page of what it follows, goes to another node than the one before it.
#[test]
fn every_case_holds_on_three_nodes_in_turn() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut dev = Dev::start(&dir.path().join("data")).unwrap_or_else(|error| panic!("{error:#}"));
    let target = Target { urls: dev.urls.clone(), key: dev.key.clone(), run: run_now() };
    all_hold(&target, || if dev.lives() { Ok(()) } else { Err(dev.log()) });
}
