//! Tests of exports from instrumentations against the expected rows, in a file for each convention. Each export is also
//! sent as protobuf, and sent twice.

use std::fs;
use std::path::{Path, PathBuf};

use assay_node_otel::proto::ExportTraceServiceRequest;
use assay_node_otel::{Encoding, Limits, Parent, ParentObject, Rows, decode};
use assay_storage_model::ObjectKind;
use assay_storage_model::command::Action;
use assay_storage_model::event::{PrepareContext, prepare};
use base64::Engine as _;
use prost::Message;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    /// Parent that the request names.
    parent: Option<String>,
    /// Export as JSON, or as protobuf in base64 if an exporter wrote it.
    export: Option<Value>,
    protobuf: Option<String>,
    rows: Vec<Value>,
    #[serde(default)]
    rejected: Vec<(usize, String)>,
}

impl Golden {
    fn sent(&self) -> (Vec<u8>, Encoding) {
        match (&self.export, &self.protobuf) {
            (Some(export), None) => (export.to_string().into_bytes(), Encoding::Json),
            (None, Some(bytes)) => {
                (base64::engine::general_purpose::STANDARD.decode(bytes).expect("base64"), Encoding::Protobuf)
            }
            _ => panic!("an export is in one of both encodings"),
        }
    }
}

fn goldens() -> Vec<(PathBuf, Golden)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("reads").path()).collect();
    found.sort();
    let read = |path: PathBuf| {
        let text = fs::read(&path).expect("reads");
        let golden = serde_json::from_slice(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        (path, golden)
    };
    found.into_iter().map(read).collect()
}

fn rows(bytes: &[u8], encoding: Encoding, parent: Option<&str>) -> Rows {
    let parent = parent.map(|parent| Parent::parse(parent).expect("a parent"));
    decode(bytes, encoding, Limits::default()).expect("decodes").rows(parent)
}

#[test]
fn every_export_is_the_rows_that_are_expected_of_it() {
    let goldens = goldens();
    assert!(goldens.len() >= 8, "a file each for the conventions and for what they share");
    let mut wrong = Vec::new();
    for (path, golden) in goldens {
        let (bytes, encoding) = golden.sent();
        let mapped = rows(&bytes, encoding, golden.parent.as_deref());
        let rejected: Vec<_> = mapped.rejected.into_iter().map(|one| (one.index, one.why)).collect();
        let rows: Vec<Value> = mapped.taken.into_iter().map(|one| one.row).collect();
        if rows != golden.rows || rejected != golden.rejected {
            let rows = serde_json::to_string_pretty(&rows).expect("writes");
            wrong.push(format!("{}: {rows}\n{rejected:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_export_is_the_same_rows_as_protobuf_and_when_it_is_sent_again() {
    for (path, golden) in goldens() {
        let parent = golden.parent.as_deref();
        let (bytes, encoding) = golden.sent();
        let once = rows(&bytes, encoding, parent);
        assert_eq!(rows(&bytes, encoding, parent), once, "{}", path.display());
        if let Some(export) = golden.export {
            let request: ExportTraceServiceRequest = serde_json::from_value(export).expect("reads");
            assert_eq!(rows(&request.encode_to_vec(), Encoding::Protobuf, parent), once, "{}", path.display());
        }
    }
}

#[test]
fn every_row_can_be_stored() {
    for (path, golden) in goldens() {
        for (index, row) in golden.rows.into_iter().enumerate() {
            let (id, is_root) = (row["id"].clone(), row["span_parents"].is_null());
            let mut new_id = || panic!("rows have ids");
            let mut context = PrepareContext { now_micros: 0, new_id: &mut new_id };
            let prepared = prepare(ObjectKind::ProjectLogs, index, row, &mut context)
                .unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            assert_eq!((prepared.id, prepared.is_root), (id.as_str().expect("an id").to_owned(), is_root));
            assert_eq!(prepared.action, Action::Upsert, "a span is whole: it replaces the row that is there");
        }
    }
}

#[test]
fn no_two_spans_of_these_exports_are_one_row() {
    let mut ids: Vec<String> = goldens()
        .into_iter()
        .flat_map(|(_, golden)| golden.rows)
        .map(|row| row["id"].as_str().expect("an id").to_owned())
        .collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn a_span_that_names_a_parent_goes_there_and_the_others_where_the_request_says() {
    let (_, golden) = goldens().into_iter().find(|(path, _)| path.ends_with("spans.json")).expect("a file");
    let (bytes, encoding) = golden.sent();
    let parents = |parent: Option<&str>| -> Vec<(usize, Option<ParentObject>)> {
        let rows = rows(&bytes, encoding, parent);
        rows.taken.into_iter().map(|one| (one.index, one.parent.map(|parent| parent.object.clone()))).collect()
    };
    let request = Some(ParentObject::Project("p".to_owned()));
    let named = Some(ParentObject::ProjectNamed("other".to_owned()));
    let said = vec![(0, request.clone()), (1, request.clone()), (2, request), (8, named.clone())];
    assert_eq!(parents(golden.parent.as_deref()), said);
    assert_eq!(parents(None), [(0, None), (1, None), (2, None), (8, named)]);
}
