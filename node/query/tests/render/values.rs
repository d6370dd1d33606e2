//! Random columns and rows, with their expected representations written by hand.

use assay_node_btql::ast::{Interval, Unit};
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_storage_model::event::parse_created;
use proptest::prelude::*;
use serde_json::{Value as Tree, json};

const KINDS: [Kinds; 9] = [
    Kinds::Null,
    Kinds::Boolean,
    Kinds::Integer,
    Kinds::Number,
    Kinds::Text,
    Kinds::Time,
    Kinds::Interval,
    Kinds::Texts,
    Kinds::Any,
];
const ROWS_MAX: usize = 12;
const COLUMNS_MAX: usize = 6;
/// Returns times in the years 1 to 9999.
const TIMES: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_799_999_999;

#[derive(Clone, Debug)]
pub struct SampleAnswer {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Value<'static>>>,
}

/// Returns tables whose values fit the kinds of their columns, in all formats.
pub fn answers() -> impl Strategy<Value = SampleAnswer> {
    let column = (any::<String>(), prop::sample::select(&KINDS), any::<bool>());
    prop::collection::vec(column, 1..COLUMNS_MAX).prop_flat_map(|columns| {
        let named = |(place, (name, kinds, nullable)): (usize, (String, Kinds, bool))| Column {
            name: format!("{name}{place}"),
            nullable: nullable || kinds == Kinds::Null,
            kinds,
        };
        let columns: Vec<Column> = columns.into_iter().enumerate().map(named).collect();
        let row: Vec<_> = columns.iter().map(cell).collect();
        prop::collection::vec(row, 0..ROWS_MAX).prop_map(move |rows| SampleAnswer { columns: columns.clone(), rows })
    })
}

fn cell(column: &Column) -> BoxedStrategy<Value<'static>> {
    let value = value(column.kinds);
    if column.nullable { prop_oneof![4 => value, 1 => Just(Value::Null)].boxed() } else { value }
}

fn value(kinds: Kinds) -> BoxedStrategy<Value<'static>> {
    let number = || {
        prop_oneof![
            any::<i64>().prop_map(Value::Integer),
            (i64::MAX as u64 + 1..).prop_map(Value::Unsigned),
            any::<f64>().prop_map(Value::float).prop_filter("a number", Value::is_number),
        ]
    };
    match kinds {
        Kinds::Null => Just(Value::Null).boxed(),
        Kinds::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        Kinds::Integer => any::<i64>().prop_map(Value::Integer).boxed(),
        Kinds::Number => number().boxed(),
        Kinds::Text => {
            prop_oneof![texts().prop_map(|text| Value::Text(text.into())), any::<u64>().prop_map(Value::Xact)].boxed()
        }
        Kinds::Time => prop_oneof![TIMES.prop_map(Value::Time), TIMES.prop_map(Value::Stored)].boxed(),
        Kinds::Interval => any::<i64>().prop_map(|value| Value::Interval(Interval { value, unit: Unit::Hour })).boxed(),
        Kinds::Texts => {
            let list = || prop::collection::vec(texts(), 0..4);
            let texts = |texts: Vec<String>| texts.into_iter().map(|text| Value::Text(text.into())).collect();
            prop_oneof![
                list().prop_map(move |of| Value::List(texts(of))),
                list().prop_map(|of| Value::Array(json!(of).to_string().into()))
            ]
            .boxed()
        }
        Kinds::Any => {
            let members = prop::collection::vec((texts(), number()), 0..3).prop_map(Value::Members);
            let object = prop::collection::btree_map(texts(), texts(), 0..3)
                .prop_map(|of| Value::Object(json!(of).to_string().into()));
            let others = [Kinds::Boolean, Kinds::Text, Kinds::Time, Kinds::Interval, Kinds::Texts].map(value);
            prop_oneof![members, object, number(), prop::strategy::Union::new(others)].boxed()
        }
    }
}

/// Returns texts with characters that are special in some format.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ab ,;\"\\\\\r\n\t\u{0}\u{1f}\u{7f}é\u{2028}]{0,80}"]
}

/// Returns the expected JSON of a value, computed without the tested code. Times have the precision of their texts.
pub fn tree(value: &Value<'_>) -> Tree {
    match value {
        Value::Null => Tree::Null,
        Value::Boolean(boolean) => json!(boolean),
        Value::Integer(number) => json!(number),
        Value::Unsigned(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Time(micros) | Value::Stored(micros) => json!({ "time": micros }),
        Value::Xact(xact) => json!(xact.to_string()),
        Value::Interval(of) => json!(format!("{} {}", of.value, of.unit.name())),
        Value::Array(json) | Value::Object(json) => serde_json::from_str(json).expect("JSON"),
        Value::List(of) => Tree::Array(of.iter().map(tree).collect()),
        Value::Members(of) => Tree::Object(of.iter().map(|(key, of)| (key.clone(), tree(of))).collect()),
    }
}

/// Returns whether the read value equals the written one.
pub fn is(value: &Value<'_>, read: &Tree) -> bool {
    match value {
        Value::Time(micros) | Value::Stored(micros) => read.as_str().and_then(parse_created) == Some(*micros),
        other => tree(other) == *read,
    }
}
