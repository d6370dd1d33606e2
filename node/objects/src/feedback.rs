//! Conversion of feedback on logged rows to writes: a merge of scores, expected and tags, and a row for a comment.
//! Pure.
//!
//! An item's `metadata` and `source` are stored in the audit record of its rows, never in the rows.

use assay_storage_model::ObjectKind;
use assay_storage_model::event::{PrepareContext, RowError, format_micros, prepare};
use serde_json::{Map, Value, json};

const SOURCES: [&str; 3] = ["app", "api", "external"];
const SOURCE_DEFAULT: &str = "external";
/// Fields that an item may change in its row.
const MERGED: [&str; 3] = ["scores", "expected", "tags"];
/// Kind whose rows have all fields of feedback. Other kinds drop fields that they lack.
const WIDEST_KIND: ObjectKind = ObjectKind::Experiment;

/// Converts items to rows. An empty item creates no row. An error contains the index of its item.
pub fn rows(items: Vec<Value>, now_micros: i64) -> Result<Vec<Value>, RowError> {
    let mut rows = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let refuse = |path: &str, problem: &str| RowError { row: index, path: path.into(), problem: problem.into() };
        let Value::Object(item) = item else {
            return Err(refuse("", "is not a JSON object; each item of feedback must be one"));
        };
        let named = json!({"id": item.get("id"), "_is_merge": true});
        let made = rows_of(item, now_micros).map_err(|(path, problem)| refuse(path, problem))?;
        // The check is here, because only here the index of the item is known. The id of an item without rows is
        // checked as well.
        let checked = if made.is_empty() { std::slice::from_ref(&named) } else { &made };
        for row in checked {
            let context = &mut PrepareContext { now_micros, new_id: &mut || "new".to_owned() };
            prepare(WIDEST_KIND, index, row.clone(), context)?;
        }
        rows.extend(made);
    }
    Ok(rows)
}

fn rows_of(mut item: Map<String, Value>, now_micros: i64) -> Result<Vec<Value>, (&'static str, &'static str)> {
    let mut given = |name: &str| item.remove(name).filter(|value| !value.is_null());
    let id = given("id").ok_or(("id", "is missing; feedback must name its row"))?;
    let source = given("source").unwrap_or_else(|| Value::from(SOURCE_DEFAULT));
    if !source.as_str().is_some_and(|source| SOURCES.contains(&source)) {
        return Err(("source", "is unknown; it must be \"app\", \"api\", \"external\" or null"));
    }
    let metadata = given("metadata").unwrap_or(Value::Null);
    let comment = given("comment");
    let changed: Vec<_> = MERGED.iter().filter_map(|name| Some((*name, given(name)?))).collect();

    let mut rows = Vec::new();
    if !changed.is_empty() || (comment.is_none() && !metadata.is_null()) {
        let mut merge = json!({
            "id": id.clone(), "_is_merge": true, "_audit_source": source.clone(), "_audit_metadata": metadata.clone(),
        });
        changed.into_iter().for_each(|(name, value)| merge[name] = value);
        rows.push(merge);
    }
    if let Some(text) = comment {
        rows.push(json!({
            "created": format_micros(now_micros), "origin": {"id": id}, "comment": {"text": text},
            "_audit_source": source, "_audit_metadata": metadata,
        }));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_makes_a_merge_and_a_comment_that_both_know_who_said_it() {
        let item =
            json!({"id": "a", "scores": {"good": 1}, "tags": ["x"], "comment": "fine", "metadata": {"by": "me"}});
        let rows = rows(vec![item], 0).expect("rows");
        assert_eq!(
            rows,
            [
                json!({"id": "a", "_is_merge": true, "_audit_source": "external", "_audit_metadata": {"by": "me"},
                       "scores": {"good": 1}, "tags": ["x"]}),
                json!({"created": "1970-01-01T00:00:00.000Z", "origin": {"id": "a"}, "comment": {"text": "fine"},
                       "_audit_source": "external", "_audit_metadata": {"by": "me"}}),
            ]
        );
    }

    #[test]
    fn an_item_makes_only_what_it_says() {
        let count = |item| rows(vec![item], 0).expect("rows").len();
        assert_eq!(count(json!({"id": "a"})), 0);
        assert_eq!(count(json!({"id": "a", "comment": "x", "scores": null})), 1);
        assert_eq!(count(json!({"id": "a", "metadata": {"k": 1}})), 1);
        assert_eq!(count(json!({"id": "a", "expected": false, "source": "app"})), 1);
    }

    #[test]
    fn what_is_wrong_is_named_with_the_place_of_its_item() {
        let cases = [
            (json!({"comment": "x"}), "row 1: `id` is missing"),
            (json!({"id": 3, "comment": "x"}), "row 1: `origin.id`"),
            (json!({"id": 3}), "row 1: `id` is 3"),
            (json!({"id": "a", "scores": {"s": 2}}), "row 1: `scores.s`"),
            (json!({"id": "a", "tags": "x"}), "row 1: `tags`"),
            (json!({"id": "a", "comment": {"text": "x"}}), "row 1: `comment.text`"),
            (json!({"id": "a", "source": "who"}), "row 1: `source`"),
            (json!({"id": "a", "metadata": 1}), "row 1: `_audit_metadata`"),
            (json!("a"), "row 1 is not a JSON object"),
        ];
        for (item, text) in cases {
            let two_rows = json!({"id": "first", "comment": "x", "tags": []});
            let error = rows(vec![two_rows, item], 0).expect_err("is refused").to_string();
            assert!(error.starts_with(text), "{error}");
        }
    }
}
