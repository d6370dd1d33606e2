//! Grouping of the rows of one `POST /logs3` by their objects (client-wire.md 4.1). Pure.
//!
//! | row with | object |
//! |---|---|
//! | `experiment_id` | the experiment; a `project_id` is ignored |
//! | `dataset_id` | the dataset; a `project_id` is ignored |
//! | `prompt_session_id` and `log_id: "x"` | the playground's logs |
//! | `project_id` and `log_id: "p"`, or with `function_data` or `prompt_data` and no `log_id` | the project's prompts |
//! | `project_id` and `log_id: "g"`, or none | the project's logs |

use std::collections::HashMap;

use assay_storage_model::ObjectKind;
use assay_storage_model::event::{SentItem, SentRow};
use serde_json::Value;
use thiserror::Error;
use uuid::Uuid;

/// Upper bound of the objects that one request may write to. Each has its own entry and outcome.
pub const GROUPS_MAX: usize = 256;

/// Rows of one object, in the order of the request.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub kind: ObjectKind,
    /// Id of the object. For logs, prompts and functions, it is the id of the project.
    pub id: Uuid,
    pub rows: Vec<SentItem>,
    /// Index of each row in the request.
    pub indexes: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IngestError {
    #[error("row {row} is not a JSON object")]
    NotAnObject { row: usize },
    #[error("row {row} names several objects: it needs one of `experiment_id`, `dataset_id` and `prompt_session_id`")]
    ManyObjects { row: usize },
    #[error(
        "row {row} names no object: it needs `experiment_id`, `dataset_id`, `prompt_session_id` with `log_id` \"x\", \
         or `project_id` with `log_id` \"g\" or \"p\""
    )]
    NoObject { row: usize },
    #[error("row {row}: `{field}` is not a UUID")]
    NotAnId { row: usize, field: &'static str },
    #[error("row {row}: `log_id` is {found}; {right}")]
    LogId { row: usize, found: String, right: &'static str },
    #[error("row {row} belongs to one object too many: a request can write to at most {GROUPS_MAX}")]
    TooMany { row: usize },
}

/// Groups rows by their objects, in the order of their first rows.
pub fn group(rows: Vec<SentItem>) -> Result<Vec<Group>, IngestError> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<(ObjectKind, Uuid), usize> = HashMap::new();
    for (index, row) in rows.into_iter().enumerate() {
        let SentItem::Row(fields) = &row else { return Err(IngestError::NotAnObject { row: index }) };
        let (kind, id) = object_of(index, fields)?;
        let place = *places.entry((kind, id)).or_insert(groups.len());
        if place == GROUPS_MAX {
            return Err(IngestError::TooMany { row: index });
        }
        if place == groups.len() {
            groups.push(Group { kind, id, rows: Vec::new(), indexes: Vec::new() });
        }
        groups[place].rows.push(row);
        groups[place].indexes.push(index);
    }
    Ok(groups)
}

fn object_of(row: usize, fields: &SentRow) -> Result<(ObjectKind, Uuid), IngestError> {
    let log_id = given(fields, "log_id");
    let refuse = |right| {
        let found = log_id.map_or_else(|| "missing".to_owned(), |found| found.to_string().chars().take(64).collect());
        Err(IngestError::LogId { row, found, right })
    };
    let log = match log_id {
        None => None,
        Some(Value::String(log)) => Some(log.as_str()),
        Some(_) => return refuse("it must be \"g\", \"p\" or \"x\""),
    };
    let owners = ["experiment_id", "dataset_id", "prompt_session_id"];
    if owners.iter().filter(|owner| given(fields, owner).is_some()).count() > 1 {
        return Err(IngestError::ManyObjects { row });
    }
    if let Some(id) = id_in(row, fields, "experiment_id")? {
        return Ok((ObjectKind::Experiment, id));
    }
    if let Some(id) = id_in(row, fields, "dataset_id")? {
        return Ok((ObjectKind::Dataset, id));
    }
    if let Some(id) = id_in(row, fields, "prompt_session_id")? {
        return match log {
            Some("x") => Ok((ObjectKind::PlaygroundLogs, id)),
            _ => refuse("with `prompt_session_id` it must be \"x\""),
        };
    }
    let id = id_in(row, fields, "project_id")?.ok_or(IngestError::NoObject { row })?;
    let defines = || given(fields, "function_data").or_else(|| given(fields, "prompt_data")).is_some();
    match log {
        Some("p") => Ok((ObjectKind::ProjectPrompts, id)),
        None if defines() => Ok((ObjectKind::ProjectPrompts, id)),
        Some("g") | None => Ok((ObjectKind::ProjectLogs, id)),
        Some(_) => refuse("with `project_id` it must be \"g\" or \"p\""),
    }
}

/// Returns a field. A null counts as absent.
fn given<'a>(fields: &'a SentRow, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn id_in(row: usize, fields: &SentRow, field: &'static str) -> Result<Option<Uuid>, IngestError> {
    let parse = |value: &Value| value.as_str().and_then(|text| Uuid::parse_str(text).ok());
    given(fields, field).map(|value| parse(value).ok_or(IngestError::NotAnId { row, field })).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const A: &str = "00000000-0000-4000-8000-00000000000a";
    const B: &str = "00000000-0000-4000-8000-00000000000b";

    #[test]
    fn a_row_goes_where_its_keys_say() {
        let cases = [
            (json!({"experiment_id": A, "project_id": B}), ObjectKind::Experiment),
            (json!({"dataset_id": A, "project_id": B, "log_id": "g"}), ObjectKind::Dataset),
            (json!({"prompt_session_id": A, "log_id": "x", "project_id": B}), ObjectKind::PlaygroundLogs),
            (json!({"project_id": A, "log_id": "g", "experiment_id": null}), ObjectKind::ProjectLogs),
            (json!({"project_id": A, "log_id": "p"}), ObjectKind::ProjectPrompts),
            (json!({"project_id": A, "function_data": {"type": "code"}}), ObjectKind::ProjectPrompts),
            (json!({"project_id": A}), ObjectKind::ProjectLogs),
        ];
        for (row, kind) in cases {
            let groups = group(vec![row.clone().into()]).expect("is routed");
            assert_eq!((groups[0].kind, groups[0].id), (kind, Uuid::parse_str(A).expect("a UUID")), "{row}");
        }
    }

    #[test]
    fn a_row_that_names_no_object_is_refused_with_its_place() {
        let good = json!({"project_id": A, "log_id": "g"});
        let cases = [
            (json!({"id": "x"}), "row 1 names no object"),
            (json!([1]), "row 1 is not a JSON object"),
            (json!({"experiment_id": "no"}), "row 1: `experiment_id` is not a UUID"),
            (json!({"project_id": A, "log_id": "z"}), "row 1: `log_id` is \"z\""),
            (json!({"project_id": A, "log_id": 3}), "row 1: `log_id` is 3"),
            (json!({"prompt_session_id": A}), "row 1: `log_id` is missing"),
        ];
        for (row, text) in cases {
            let error = group(vec![good.clone().into(), row.into()]).expect_err("is refused").to_string();
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn rows_keep_their_order_and_their_places() {
        let row = |id: &str, n: u32| json!({"dataset_id": id, "id": n.to_string()});
        let groups = group([row(A, 0), row(B, 1), row(A, 2)].map(SentItem::from).to_vec()).expect("is routed");
        let places: Vec<_> = groups.iter().map(|group| group.indexes.clone()).collect();
        assert_eq!(places, [vec![0, 2], vec![1]]);
        assert_eq!(groups[0].rows[1], SentItem::from(row(A, 2)));
    }

    #[test]
    fn a_request_over_too_many_objects_is_refused() {
        let row = |n: u128| SentItem::from(json!({"dataset_id": Uuid::from_u128(n).to_string()}));
        let most: Vec<_> = (0..GROUPS_MAX as u128).map(row).collect();
        assert_eq!(group(most.clone()).map(|groups| groups.len()), Ok(GROUPS_MAX));
        let refused = group(most.into_iter().chain([row(1 << 40)]).collect());
        assert_eq!(refused, Err(IngestError::TooMany { row: GROUPS_MAX }));
    }
}
