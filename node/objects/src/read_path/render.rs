//! Rows in the form for clients: system fields before and after the document, whose text is unchanged. Pure.
//!
//! | field | from |
//! |---|---|
//! | `_xact_id`, `_pagination_key` | the row's version and place |
//! | `org_id`, `project_id`, `experiment_id`, `dataset_id`, `prompt_session_id`, `log_id` | the object |
//! | `id`, `created`, `span_id`, `root_span_id`, `span_parents`, `is_root` and what was logged | the document |
//! | `comments` | the document of each comment with its id, source and metadata, or null |
//! | `audit_data` | one item for each write with a known origin, or null |

use assay_storage_model::merge::{MergeError, doc_field};
use assay_storage_model::{ObjectKind, Xact};
use assay_storage_shard::{Event, Notes, Row};
use bytes::Bytes;

use crate::RowHome;

/// Upper bound of the bytes of a row's system fields, without notes.
const FRAME_BYTES: usize = 384;
/// Bytes of a note without its texts.
const NOTE_BYTES: usize = 128;

/// Returns the fields that all rows of an object share, each followed by a comma.
pub fn object_fields(home: &RowHome) -> String {
    let (id, project, org) = (home.object.id, home.project_id, home.org);
    match home.object.kind {
        ObjectKind::ProjectLogs => format!(r#""org_id":"{org}","project_id":"{project}","log_id":"g","#),
        ObjectKind::Experiment => format!(r#""project_id":"{project}","experiment_id":"{id}","#),
        ObjectKind::Dataset => format!(r#""project_id":"{project}","dataset_id":"{id}","#),
        ObjectKind::PlaygroundLogs => {
            format!(r#""org_id":"{org}","project_id":"{project}","prompt_session_id":"{id}","log_id":"x","#)
        }
        ObjectKind::ProjectPrompts => format!(r#""org_id":"{org}","project_id":"{project}","log_id":"p","#),
        ObjectKind::AuditLog | ObjectKind::Files => format!(r#""org_id":"{org}","#),
    }
}

/// Returns the JSON text of a row. `fields` has the fields of its object.
pub fn event(kind: ObjectKind, fields: &str, row: &Row, notes: Option<&Notes>) -> Result<Bytes, MergeError> {
    let noted = notes.map_or(0, |notes| {
        let of = |event: &Event| NOTE_BYTES + event.written.len() + event.audit.len();
        notes.comments.iter().chain(&notes.audits).map(of).sum()
    });
    let mut out = Vec::with_capacity(FRAME_BYTES + fields.len() + row.doc.len() + noted);
    out.push(b'{');
    put_xact(&mut out, row.xact);
    out.extend_from_slice(format!(r#","_pagination_key":"{}","#, row.key).as_bytes());
    out.extend_from_slice(fields.as_bytes());
    out.extend_from_slice(members(&row.doc)?);
    // Clients treat a dataset's row without this field as one of an old format.
    if kind == ObjectKind::Dataset && doc_field(&row.doc, "expected")?.is_none() {
        out.extend_from_slice(br#","expected":null"#);
    }
    let nothing = Notes::default();
    out.extend_from_slice(br#","comments":"#);
    notes.unwrap_or(&nothing).put_comments(&mut out)?;
    out.extend_from_slice(br#","audit_data":"#);
    notes.unwrap_or(&nothing).put_audits(&mut out)?;
    out.push(b'}');
    Ok(Bytes::from(out))
}

fn put_xact(out: &mut Vec<u8>, xact: Xact) {
    out.extend_from_slice(format!(r#""_xact_id":"{xact}""#).as_bytes());
}

/// Returns the members of a stored object, which is never empty, without the braces.
fn members(object: &[u8]) -> Result<&[u8], MergeError> {
    match object {
        [b'{', members @ .., b'}'] if !members.is_empty() => Ok(members),
        _ => Err(MergeError::Text { what: "no object with members", at: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_storage_model::command::Action;
    use assay_storage_model::{ObjectKey, OrgId, PaginationKey};
    use assay_storage_shard::Text;
    use serde_json::{Value, json};
    use uuid::Uuid;

    fn home(kind: ObjectKind) -> RowHome {
        let org = OrgId(Uuid::from_u128(1));
        let project_id = Uuid::from_u128(2);
        let id = if kind == ObjectKind::ProjectLogs { project_id } else { Uuid::from_u128(3) };
        RowHome { object: ObjectKey::new(org, kind, id), org, project_id }
    }

    fn row(doc: &str) -> Row {
        let xact = Xact::new(1_761_000_000, 3);
        Row {
            id: Text::copied("a"),
            key: PaginationKey::new(xact, 0),
            xact,
            is_root: true,
            created: 0,
            span_id: Text::copied("a"),
            root_span_id: Text::copied("a"),
            doc: Bytes::copy_from_slice(doc.as_bytes()),
        }
    }

    fn note(action: Action, written: &str, audit: &str) -> Event {
        Event {
            xact: Xact::new(1_761_000_001, 0),
            action,
            created: 0,
            own_id: Text::copied("c"),
            written: Bytes::copy_from_slice(written.as_bytes()),
            rules: Bytes::new(),
            audit: Bytes::copy_from_slice(audit.as_bytes()),
        }
    }

    fn rendered(kind: ObjectKind, doc: &str, notes: Option<&Notes>) -> Value {
        let text = event(kind, &object_fields(&home(kind)), &row(doc), notes).expect("renders");
        assert!(text.len() <= FRAME_BYTES + 512 + doc.len());
        serde_json::from_slice(&text).expect("JSON")
    }

    #[test]
    fn a_row_of_a_projects_log_has_its_system_fields() {
        let found = rendered(ObjectKind::ProjectLogs, r#"{"id":"a","span_parents":null,"input":{"x":1}}"#, None);
        assert_eq!(
            found,
            json!({
                "_xact_id": "1000196001148960771", "_pagination_key": PaginationKey::new(Xact::new(1_761_000_000, 3), 0).to_string(),
                "org_id": Uuid::from_u128(1), "project_id": Uuid::from_u128(2), "log_id": "g",
                "id": "a", "span_parents": null, "input": {"x": 1}, "comments": null, "audit_data": null,
            })
        );
        assert_eq!(found["_xact_id"].as_str().map(str::len), Some(19));
    }

    #[test]
    fn every_kind_names_its_object() {
        for (kind, field) in [
            (ObjectKind::Experiment, "experiment_id"),
            (ObjectKind::Dataset, "dataset_id"),
            (ObjectKind::PlaygroundLogs, "prompt_session_id"),
        ] {
            let found = rendered(kind, r#"{"id":"a"}"#, None);
            assert_eq!(found[field], json!(Uuid::from_u128(3)));
            assert_eq!(found["project_id"], json!(Uuid::from_u128(2)));
        }
    }

    #[test]
    fn a_datasets_row_always_has_an_expected() {
        let found =
            |doc| rendered(ObjectKind::Dataset, doc, None).as_object().expect("an object").get("expected").cloned();
        assert_eq!(found(r#"{"id":"a"}"#), Some(Value::Null));
        assert_eq!(found(r#"{"id":"a","expected":3}"#), Some(json!(3)));
        assert_eq!(rendered(ObjectKind::Experiment, r#"{"id":"a"}"#, None).get("expected"), None);
    }

    #[test]
    fn notes_say_who_and_what() {
        let comments = vec![
            note(Action::Comment, r#"{"id":"c","comment":{"text":"x"}}"#, r#"{"source":"app","metadata":{"by":1}}"#),
            note(Action::Comment, r#"{"id":"d","comment":{"text":"y"}}"#, ""),
        ];
        let audits = vec![note(Action::Merge, "", r#"{"source":"api","metadata":null}"#)];
        let found = rendered(ObjectKind::Experiment, r#"{"id":"a"}"#, Some(&Notes { comments, audits }));
        let xact = "1000196001149026304";
        assert_eq!(
            found["comments"],
            json!([
                {"_xact_id": xact, "id": "c", "comment": {"text": "x"}, "source": "app", "metadata": {"by": 1}},
                {"_xact_id": xact, "id": "d", "comment": {"text": "y"}, "source": null, "metadata": null},
            ])
        );
        let audit = json!([{"_xact_id": xact, "audit_data": {"action": "merge"}, "source": "api", "metadata": null}]);
        assert_eq!(found["audit_data"], audit);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for doc in ["", "{}", "[1]", "{"] {
            assert!(event(ObjectKind::Dataset, "", &row(doc), None).is_err(), "{doc}");
        }
    }
}
