//! Columns of the result of a query, known before its execution (btql.md, section 1.2).

use serde_json::{Map, Value, json};

use crate::bind::kinds;
use crate::bound::{Aggregate, Bound, BoundExpr, Groups, INFERRED, Kinds, Output};

/// A column of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub kinds: Kinds,
    /// Counts are never null.
    pub nullable: bool,
}

/// The columns of a query's answer in their order; of a pivot those that do not hang on the data.
pub fn columns(bound: &Bound) -> Vec<Column> {
    match &bound.output {
        Output::Rows { columns, .. } => of(columns, &[], &[]),
        Output::Groups(groups) => of_groups(groups),
        Output::Infer(_) => {
            let kinds = [Kinds::Any, Kinds::Text, Kinds::Integer, Kinds::Any].into_iter();
            let column = |(name, kinds): (&str, Kinds)| Column { name: name.into(), kinds, nullable: false };
            INFERRED.into_iter().zip(kinds).map(column).collect()
        }
    }
}

fn of_groups(groups: &Groups) -> Vec<Column> {
    if let Some(again) = &groups.again {
        return of_groups(again);
    }
    let mut columns = of(&groups.columns, &groups.aggregates, &groups.dimensions);
    if let Some(pivot) = &groups.pivot {
        columns.truncate(pivot.column);
    }
    columns
}

fn of(columns: &[(String, BoundExpr)], aggregates: &[Aggregate], dimensions: &[BoundExpr]) -> Vec<Column> {
    let column = |(name, expr): &(String, BoundExpr)| {
        let counts = match expr {
            BoundExpr::Field(crate::bound::Field::Aggregate(number), steps) if steps.is_empty() => {
                aggregates.get(*number).is_some_and(|aggregate| aggregate.function == crate::bound::Aggregation::Count)
            }
            _ => false,
        };
        Column { name: name.clone(), kinds: kinds(expr, aggregates, dimensions), nullable: !counts }
    };
    columns.iter().map(column).collect()
}

/// The JSON Schema of an answer's rows (D-09).
pub fn json_schema(columns: &[Column]) -> Value {
    let properties: Map<String, Value> =
        columns.iter().map(|column| (column.name.clone(), of_column(column))).collect();
    json!({"type": "array", "items": {"type": "object", "properties": properties}})
}

fn of_column(column: &Column) -> Value {
    let of = |name: &str| if column.nullable { json!({"type": [name, "null"]}) } else { json!({"type": name}) };
    match column.kinds {
        Kinds::Boolean => of("boolean"),
        Kinds::Integer => of("integer"),
        Kinds::Number => of("number"),
        Kinds::Text | Kinds::Interval => of("string"),
        Kinds::Time => json!({"type": "string", "format": "date-time"}),
        Kinds::Texts => json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}),
        Kinds::Null => json!({"type": "null"}),
        Kinds::Any => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Env, bind, parse_text};

    use super::*;

    #[test]
    fn columns_are_described_in_their_order() {
        let text = "SELECT metadata.model, count(*) AS n, avg(scores.a) AS mean, max(created) AS last FROM project_logs('P') GROUP BY 1";
        let bound = bind(&parse_text(text).expect("it parses"), &Env::default()).expect("it binds");
        let schema = json_schema(&columns(&bound));
        let expected = json!({"model": {}, "n": {"type": "integer"}, "mean": {"type": ["number", "null"]},
            "last": {"type": "string", "format": "date-time"}});
        assert_eq!(schema["items"]["properties"], expected);
        let names: Vec<_> = schema["items"]["properties"].as_object().expect("an object").keys().collect();
        assert_eq!(names, ["model", "n", "mean", "last"]);
    }
}
