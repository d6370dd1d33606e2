//! Mapping of exported transactions to local ones, and of references to versions.
//!
//! Datasets and prompts are written again transaction by transaction, so each version has a local one. A reference
//! names the object and a transaction id. It means the object's state up to that transaction.
//!
//! | reference | refers to a version of |
//! |---|---|
//! | record of an environment's object | the dataset, or the prompts of the prompt's project |
//! | record of a snapshot | its dataset |
//! | record of an experiment | its dataset, and the prompts of the project of its parameters |
//! | `origin` of a row | the source dataset or prompt |
//! | `prompt_data.origin`, `metadata.prompt` of a row | the prompt |

use std::collections::HashMap;

use assay_storage_model::merge::doc_field;
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, Xact};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::export::records::{RecordLine, project_of_prompt};

/// Upper bound of the stored versions, which take about 16 bytes each.
pub(crate) const VERSIONS_MAX: usize = 8_000_000;

#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// Pairs of exported and local versions by object, in ascending order.
    of: HashMap<ObjectKey, Vec<(Xact, Xact)>>,
    count: usize,
    /// Project of each prompt.
    projects: HashMap<Uuid, Uuid>,
}

impl Versions {
    pub fn learn(&mut self, record: &RecordLine) {
        if let Some(project) = project_of_prompt(record) {
            self.projects.insert(record.id, project);
        }
    }

    /// Adds a version, in the order of the transactions. Returns `false` if there are too many.
    pub fn note(&mut self, object: ObjectKey, there: Xact, here: Xact) -> bool {
        let of = self.of.entry(object).or_default();
        if of.last().is_none_or(|(last, _)| *last < there) {
            of.push((there, here));
            self.count += 1;
        }
        self.count <= VERSIONS_MAX
    }

    /// Returns the local version of an object for an exported one, or `None` if the object was not written by then.
    fn at(&self, object: &ObjectKey, there: Xact) -> Option<Xact> {
        let of = self.of.get(object)?;
        let behind = of.partition_point(|(known, _)| *known <= there);
        Some(of.get(behind.checked_sub(1)?)?.1)
    }

    fn named(&self, org: OrgId, kind: &str, id: &Value, version: &Value) -> Option<String> {
        let id = Uuid::parse_str(id.as_str()?).ok()?;
        let object = match kind {
            "dataset" => ObjectKey::new(org, ObjectKind::Dataset, id),
            "prompt" | "function" => ObjectKey::new(org, ObjectKind::ProjectPrompts, *self.projects.get(&id)?),
            _ => return None,
        };
        let there = Xact::parse(version.as_str()?).ok()?;
        self.at(&object, there).map(|here| here.to_string())
    }

    /// Replaces the versions that a record references by local ones.
    pub fn in_record(&self, org: OrgId, record: &mut RecordLine) {
        let body = &mut record.body;
        let names: &[(&str, &str, &str)] = match record.kind.as_str() {
            "dataset_snapshot" => &[("dataset", "dataset_id", "xact_id")],
            "experiment" => {
                &[("dataset", "dataset_id", "dataset_version"), ("prompt", "parameters_id", "parameters_version")]
            }
            "environment_object" if body.get("object_type").and_then(Value::as_str) == Some("dataset") => {
                &[("dataset", "object_id", "object_version")]
            }
            "environment_object" => &[("prompt", "object_id", "object_version")],
            _ => &[],
        };
        for (kind, id, version) in names {
            let (Some(id), Some(there)) = (body.get(*id), body.get(*version)) else { continue };
            if let Some(here) = self.named(org, kind, id, there) {
                body.insert((*version).to_owned(), here.into());
            }
        }
    }

    /// Replaces the versions that a document references by local ones. The rest of its text stays unchanged.
    pub fn in_document(&self, org: OrgId, doc: &mut Vec<u8>) {
        for path in [&["origin"][..], &["prompt_data", "origin"], &["metadata", "prompt"]] {
            let Some((start, part)) = within(doc, path) else { continue };
            let Some((there, here)) = self.in_part(org, part) else { continue };
            let part_end = start + part.len();
            let (there, here) = (format!("\"{there}\""), format!("\"{here}\""));
            if let Some(at) = find(&doc[start..part_end], there.as_bytes()) {
                let at = start + at;
                doc.splice(at..at + there.len(), here.bytes());
            }
        }
    }

    /// Returns the version that a part references, and the local one.
    fn in_part(&self, org: OrgId, part: &[u8]) -> Option<(String, String)> {
        let part: Map<String, Value> = serde_json::from_slice(part).ok()?;
        let get = |name: &str| part.get(name).unwrap_or(&Value::Null);
        let (kind, id, version) = match part.get("object_type") {
            Some(kind) => (kind.as_str()?, get("object_id"), get("_xact_id")),
            None if part.contains_key("prompt_id") => ("prompt", get("prompt_id"), get("prompt_version")),
            None => ("prompt", get("id"), get("version")),
        };
        Some((version.as_str()?.to_owned(), self.named(org, kind, id, version)?))
    }
}

/// Returns the offset and the text of the value at a path in a document.
fn within<'d>(doc: &'d [u8], path: &[&str]) -> Option<(usize, &'d [u8])> {
    let mut part = doc;
    for name in path {
        part = doc_field(part, name).ok()??;
    }
    // The part is a slice of the document.
    Some((part.as_ptr().addr().checked_sub(doc.as_ptr().addr())?, part))
}

fn find(text: &[u8], sought: &[u8]) -> Option<usize> {
    text.windows(sought.len()).position(|window| window == sought)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ORG: OrgId = OrgId(Uuid::from_u128(7));
    const DATASET: Uuid = Uuid::from_u128(1);
    const PROJECT: Uuid = Uuid::from_u128(2);
    const PROMPT: Uuid = Uuid::from_u128(3);

    fn xact(n: u16) -> Xact {
        Xact::new(1_761_000_000, n)
    }

    fn carried(kind: &str, id: Uuid, body: Value) -> RecordLine {
        let body = body.as_object().cloned().unwrap_or_default();
        RecordLine { kind: kind.into(), id, owned: true, created: 0, keys: Vec::new(), body, without_secret: false }
    }

    fn versions() -> Versions {
        let mut versions = Versions::default();
        let object = ObjectKey::new(ORG, ObjectKind::Dataset, DATASET);
        assert!(versions.note(object, xact(10), xact(110)) && versions.note(object, xact(20), xact(120)));
        versions.learn(&carried("prompt", PROMPT, json!({"project_id": PROJECT, "slug": "s"})));
        assert!(versions.note(ObjectKey::new(ORG, ObjectKind::ProjectPrompts, PROJECT), xact(10), xact(210)));
        versions
    }

    #[test]
    fn a_version_is_what_the_object_was_up_to_there() {
        let (versions, object) = (versions(), ObjectKey::new(ORG, ObjectKind::Dataset, DATASET));
        let found = [9, 10, 15, 20, 99].map(|there| versions.at(&object, xact(there)));
        assert_eq!(found, [None, Some(xact(110)), Some(xact(110)), Some(xact(120)), Some(xact(120))]);
        assert_eq!(versions.at(&ObjectKey::new(ORG, ObjectKind::Dataset, PROMPT), xact(10)), None);
    }

    #[test]
    fn records_name_the_versions_of_this_place() {
        let versions = versions();
        let text = |n| xact(n).to_string();
        let cases = [
            ("dataset_snapshot", json!({"dataset_id": DATASET, "xact_id": text(12)}), "xact_id", 110),
            (
                "experiment",
                json!({"dataset_id": DATASET, "dataset_version": xact(20).pretty()}),
                "dataset_version",
                120,
            ),
            ("experiment", json!({"parameters_id": PROMPT, "parameters_version": text(10)}), "parameters_version", 210),
            (
                "environment_object",
                json!({"object_type": "prompt", "object_id": PROMPT, "object_version": text(10)}),
                "object_version",
                210,
            ),
            (
                "environment_object",
                json!({"object_type": "dataset", "object_id": DATASET, "object_version": text(20)}),
                "object_version",
                120,
            ),
            ("project", json!({"dataset_id": DATASET, "xact_id": text(12)}), "xact_id", 12),
            ("dataset_snapshot", json!({"dataset_id": PROJECT, "xact_id": text(12)}), "xact_id", 12),
        ];
        for (kind, body, field, expected) in cases {
            let mut record = carried(kind, Uuid::nil(), body);
            versions.in_record(ORG, &mut record);
            assert_eq!(record.body[field], json!(text(expected)), "{kind}");
        }
    }

    #[test]
    fn rows_name_them_too_and_keep_all_other_text() {
        let versions = versions();
        let (there, here, of_prompt) = (xact(10), xact(110), xact(210));
        let cases = [
            (
                format!(
                    r#"{{"x":1.50,"origin":{{"object_type":"dataset","object_id":"{DATASET}","_xact_id":"{there}"}},"y":"{there}"}}"#
                ),
                format!(
                    r#"{{"x":1.50,"origin":{{"object_type":"dataset","object_id":"{DATASET}","_xact_id":"{here}"}},"y":"{there}"}}"#
                ),
            ),
            (
                format!(r#"{{"prompt_data":{{"origin":{{"prompt_id":"{PROMPT}","prompt_version":"{there}"}}}}}}"#),
                format!(r#"{{"prompt_data":{{"origin":{{"prompt_id":"{PROMPT}","prompt_version":"{of_prompt}"}}}}}}"#),
            ),
            (
                format!(r#"{{"metadata":{{"prompt":{{"id":"{PROMPT}","version":"{there}"}}}}}}"#),
                format!(r#"{{"metadata":{{"prompt":{{"id":"{PROMPT}","version":"{of_prompt}"}}}}}}"#),
            ),
        ];
        for (before, after) in cases {
            let mut doc = before.clone().into_bytes();
            versions.in_document(ORG, &mut doc);
            assert_eq!(String::from_utf8(doc).expect("text"), after);
        }
        for same in [
            format!(r#"{{"origin":{{"object_type":"experiment","object_id":"{DATASET}","_xact_id":"{there}"}}}}"#),
            format!(r#"{{"origin":{{"object_type":"dataset","object_id":"{PROMPT}","_xact_id":"{there}"}}}}"#),
            r#"{"origin":null,"metadata":{"prompt":"x"},"prompt_data":[1]}"#.to_owned(),
        ] {
            let mut doc = same.clone().into_bytes();
            versions.in_document(ORG, &mut doc);
            assert_eq!(String::from_utf8(doc).expect("text"), same);
        }
    }
}
