//! Exports that SDKs wrote, against the expected rows, in a file for each SDK.
//!
//! The files have the fields that this crate makes. Tests of `assay-node-otel` expect those that every span has.

use std::fs;
use std::path::{Path, PathBuf};

use assay_node_langfuse::{SdkVersion, rows_of_export};
use assay_node_otel::{Encoding, Limits, decode};
use assay_storage_model::ObjectKind;
use assay_storage_model::event::{PrepareContext, prepare};
use serde_json::Value;
use uuid::Uuid;

fn goldens() -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("reads").path()).collect();
    found.sort();
    let read = |path: PathBuf| {
        let golden = serde_json::from_slice(&fs::read(&path).expect("reads")).expect("JSON");
        (path, golden)
    };
    found.into_iter().map(read).collect()
}

fn rows(golden: &Value) -> Vec<Value> {
    let sdk = SdkVersion::of(golden["sdk"][0].as_str(), golden["sdk"][1].as_str());
    let bytes = golden["export"].to_string();
    let export = decode(bytes.as_bytes(), Encoding::Json, Limits::default()).expect("an export");
    let rows = rows_of_export(export, Uuid::nil(), sdk);
    assert!(rows.rejected.is_empty(), "{:?}", rows.rejected);
    rows.taken.into_iter().map(|one| one.row).collect()
}

/// Returns whether a value has all members of another, at every level.
fn has(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(name, value)| found.get(name).is_some_and(|found| has(found, value)))
        }
        (found, expected) => found == expected,
    }
}

#[test]
fn every_export_is_the_rows_that_are_expected_of_it() {
    for (path, golden) in goldens() {
        let (found, expected) = (rows(&golden), golden["rows"].as_array().expect("rows"));
        assert_eq!(found.len(), expected.len(), "{}: {found:?}", path.display());
        for (found, expected) in found.iter().zip(expected) {
            assert!(has(found, expected), "{}: {found:#}\nlacks members of {expected:#}", path.display());
        }
    }
}

#[test]
fn every_row_can_be_stored() {
    for (path, golden) in goldens() {
        let rows = rows(&golden);
        assert!(!rows.is_empty(), "{}", path.display());
        for (index, row) in rows.into_iter().enumerate() {
            let mut new_id = || panic!("rows have ids");
            let mut context = PrepareContext { now_micros: 0, new_id: &mut new_id };
            prepare(ObjectKind::ProjectLogs, index, row, &mut context)
                .unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        }
    }
}
