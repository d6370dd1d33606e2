//! Filters of rules, evaluated on single rows without an engine.

use std::borrow::Cow;

use assay_node_btql::bound::Field;
use assay_node_btql::columns::Kind;
use assay_node_btql::values::Value;
use assay_node_expressions::{Env, Program, Type};
use assay_node_online_scoring::RuleFilter;
use assay_storage_model::ObjectKey;
use assay_storage_model::merge::doc_fields;
use assay_storage_shard::Row;

/// Filter that is ready to run.
#[derive(Debug)]
pub(crate) struct RowCondition(Program);

/// Row of a project's log with the members that its document does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedRow<'r> {
    pub object: &'r ObjectKey,
    pub row: &'r Row,
}

impl RowCondition {
    /// Compiles a filter. Functions such as `now()` have the time of the compilation.
    pub fn compile(text: &str, now_micros: i64) -> Result<RowCondition, String> {
        let filter = RuleFilter::parse_at(text, now_micros).map_err(|why| why.to_string())?;
        let schema = |field: &Field, steps: &[_]| match field {
            Field::Column(name) if steps.is_empty() => {
                let place = Kind::ProjectLogs.columns().iter().position(|known| known == name)?;
                Some((place, type_of(name)))
            }
            _ => None,
        };
        Program::compile(&filter.0, &schema, &Env::default()).map(RowCondition).map_err(|why| why.to_string())
    }

    /// Returns whether the filter holds for a row. One that fails on a row does not hold.
    pub fn holds(&self, logged: LoggedRow<'_>) -> bool {
        let Ok(fields) = doc_fields(&logged.row.doc) else { return false };
        let value = |name: &'static str| {
            own_value(name, logged).unwrap_or_else(|| {
                let found = fields.iter().find(|(known, _)| known == name).map(|(_, text)| *text);
                found.and_then(|text| std::str::from_utf8(text).ok()).map_or(Value::Null, Value::read)
            })
        };
        let inputs: Vec<Value<'_>> = Kind::ProjectLogs.columns().iter().map(|name| value(name)).collect();
        self.0.value(&inputs).is_ok_and(|value| value.truth() == Some(true))
    }
}

fn type_of(column: &str) -> Type {
    match column {
        "_xact_id" => Type::Xact,
        "created" => Type::Created,
        "is_root" => Type::Bool,
        "id" | "span_id" | "root_span_id" | "project_id" | "org_id" | "log_id" | "_pagination_key" => Type::Text,
        _ => Type::Json,
    }
}

/// Returns the value of a column that is not in the document.
fn own_value<'r>(column: &str, LoggedRow { object, row }: LoggedRow<'r>) -> Option<Value<'r>> {
    let text = |text: String| Value::Text(Cow::Owned(text));
    Some(match column {
        "_xact_id" => Value::Xact(row.xact.0),
        "_pagination_key" => text(row.key.to_string()),
        "created" => Value::Stored(row.created),
        "is_root" => Value::Boolean(row.is_root),
        "span_id" => Value::Text(Cow::Borrowed(row.span_id.as_str())),
        "root_span_id" => Value::Text(Cow::Borrowed(row.root_span_id.as_str())),
        "project_id" => text(object.id.to_string()),
        "org_id" => text(object.org.to_string()),
        "log_id" => Value::Text(Cow::Borrowed("g")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use assay_storage_model::{ObjectKind, OrgId, PaginationKey, Xact};
    use assay_storage_shard::Text;
    use bytes::Bytes;
    use uuid::Uuid;

    use super::*;

    fn holds(filter: &str) -> bool {
        let doc = r#"{"id":"a","created":"2026-11-29T10:00:00.000Z","input":"a refund, please","output":{"n":5},
            "metadata":{"env":"prod","n":3},"tags":["x","y"],"scores":{"s":0.5},"metrics":{"start":1,"end":3.5},
            "span_attributes":{"name":"chat","type":"llm"}}"#;
        let xact = Xact::new(1_790_000_000, 7);
        let row = Row {
            id: Text::copied("a"),
            key: PaginationKey::new(xact, 0),
            xact,
            is_root: true,
            created: 1_790_000_000_000_000,
            span_id: Text::copied("s"),
            root_span_id: Text::copied("r"),
            doc: Bytes::from_static(doc.as_bytes()),
        };
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(2));
        let now = 1_790_000_060_000_000;
        let condition = RowCondition::compile(filter, now).expect(filter);
        condition.holds(LoggedRow { object: &object, row: &row })
    }

    #[test]
    fn filters_hold_as_in_queries() {
        for filter in [
            "metadata.env = 'prod'",
            "metadata.env != 'dev'",
            "metadata.n >= 3 and output.n = 5",
            "is_root and span_attributes.name = 'chat'",
            "root_span_id = 'r' and span_id = 's' and id = 'a'",
            "tags includes ['x']",
            "input match 'refund'",
            "error is null and scores.s < 1",
            "created > now() - interval 1 hour",
            "duration(metrics) > 2 or metrics.end - metrics.start > 2",
            "project_id = '00000000-0000-0000-0000-000000000002' and log_id = 'g'",
        ]
        .into_iter()
        .filter(|filter| RuleFilter::parse(filter).is_ok())
        {
            assert!(holds(filter), "{filter}");
        }
        for filter in ["metadata.env = 'dev'", "metadata.none = 1", "not is_root", "created < now() - interval 1 hour"]
        {
            assert!(!holds(filter), "{filter}");
        }
    }
}
