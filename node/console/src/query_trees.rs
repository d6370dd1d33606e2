//! Query trees, in which a text from a caller can only be an expression.

use serde_json::{Value, json};
use uuid::Uuid;

/// Returns a query over objects of one kind. Each column is a pair of alias and expression.
pub fn select_from(kind: &str, ids: &[Uuid], shape: &str, columns: &[(&str, &str)]) -> Value {
    let ids: Vec<Value> = ids.iter().map(|id| json!({"op": "literal", "value": id})).collect();
    let columns: Vec<Value> =
        columns.iter().map(|(alias, expression)| json!({"alias": alias, "expr": {"btql": expression}})).collect();
    json!({
        "select": columns,
        "from": {"op": "function", "name": {"op": "ident", "name": [kind]}, "args": ids, "shape": shape},
    })
}

/// Returns the conjunction of expressions, or `None` if there are none.
pub fn all_of(expressions: &[&str]) -> Option<Value> {
    let trees = expressions.iter().map(|text| json!({"btql": text}));
    trees.reduce(|left, right| json!({"op": "and", "left": left, "right": right}))
}
