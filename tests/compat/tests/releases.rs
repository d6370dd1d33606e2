//! Tests of every existing release, and of the one that the current program would write.
//!
//! If a format changed, `assay-tests-tidy` requires data of it: with the new version in `Cargo.toml`, run `cargo build
//! -p assay && cargo test -p assay-test-compat -- --ignored`.

use assay_test_api::server::program;
use assay_test_compat::hold::complaints;
use assay_test_compat::release::Release;
use assay_test_compat::{release, write};

/// Returns the complaints, from a directory of its own.
fn held(release: &Release) -> Vec<String> {
    let place = tempfile::tempdir().expect("a directory");
    complaints(release, place.path()).unwrap_or_else(|error| panic!("{}: {error:#}", release.dir.display()))
}

#[test]
fn every_release_is_read_as_it_was_written() {
    let releases = release::all().unwrap_or_else(|error| panic!("{error:#}"));
    assert!(!releases.is_empty(), "there is no release");
    for release in releases {
        let found = held(&release);
        assert!(found.is_empty(), "{}\n\n{}", release.dir.display(), found.join("\n\n"));
    }
}

#[test]
fn what_todays_program_writes_is_such_a_release_and_another_answer_is_seen() {
    let place = tempfile::tempdir().expect("a directory");
    let release =
        write::release(&place.path().join("release"), place.path()).unwrap_or_else(|error| panic!("{error:#}"));
    let found = held(&release);
    assert!(found.is_empty(), "{}", found.join("\n\n"));

    let reads = release.dir.join("reads.json");
    let text = std::fs::read_to_string(&reads).expect("reads");
    let other = text.replace("sealed, then deleted", "sealed, then changed");
    assert_ne!(text, other);
    std::fs::write(&reads, other).expect("writes");
    let found = held(&release);
    assert_eq!(found.len(), 2, "once as it was left, once behind what was written on: {found:?}");
}

#[test]
#[ignore = "writes into releases/"]
fn a_release_is_written() {
    let program = program().unwrap_or_else(|error| panic!("{error:#}"));
    let said = std::process::Command::new(program).arg("--version").output().expect("says its version").stdout;
    let said = String::from_utf8_lossy(&said);
    let version = said.trim().strip_prefix("assay ").expect("`assay` and a version");
    let dir = release::folder().unwrap_or_else(|error| panic!("{error:#}")).join(version);
    assert!(!dir.exists(), "{} is there: what was released stays; the next format is a next version's", dir.display());
    let place = tempfile::tempdir().expect("a directory");
    write::release(&dir, place.path()).unwrap_or_else(|error| panic!("{error:#}"));
    println!("written: {}", dir.display());
}
