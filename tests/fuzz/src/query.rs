//! Texts and trees that may be queries: each is refused or bound, and a parsed query survives printing and parsing.

use assay_node_btql::{Env, bind, expression, in_clauses, in_sql, in_tree, parse, parse_expression};
use serde_json::Value;

use crate::{NOW_MICROS, chosen};

pub fn run(input: &[u8]) {
    let Some((kind, rest)) = chosen(input, 3) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let query = match kind {
        0 => Value::String(text.to_owned()),
        1 => {
            if let Ok(expr) = parse_expression(text) {
                let said = expression(&expr);
                assert_eq!(parse_expression(&said).as_ref(), Ok(&expr), "{said}");
            }
            return;
        }
        _ => match serde_json::from_str(text) {
            Ok(tree @ Value::Object(_)) => tree,
            _ => return,
        },
    };
    let Ok(parsed) = parse(&query) else { return };
    let query = parsed.query;
    for form in [in_sql(&query).map(Value::String), in_clauses(&query).map(Value::String), in_tree(&query)] {
        let Ok(said) = form else { continue };
        // What has other words in another form has the same words from then on.
        let again = parse(&said).unwrap_or_else(|error| panic!("{said}: {error}")).query;
        let same = match &said {
            Value::String(text) if text.starts_with("SELECT") => in_sql(&again).map(Value::String),
            Value::String(_) => in_clauses(&again).map(Value::String),
            _ => in_tree(&again),
        };
        assert_eq!(same.as_ref(), Ok(&said));
    }
    for tz_offset in [0, 480] {
        let _ = bind(&query, &Env { now: NOW_MICROS, tz_offset, audit_log: tz_offset > 0, ..Env::default() });
    }
}
