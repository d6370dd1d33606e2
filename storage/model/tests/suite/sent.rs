//! Rows read from text without a tree, compared with the same text read as a tree.

use std::cell::Cell;

use assay_storage_model::ObjectKind;
use assay_storage_model::event::{BodyOfList, DEPTH_MAX, KEY_BYTES_MAX, ListUnder, SentItem};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny};
use serde_json::Value;

use crate::{prepared_one, text};

/// Returns any JSON that a client may send as a row, with spaces, escapes and repetitions.
#[track_caller]
fn check_alike(row: &str) {
    let read = serde_json::from_str::<SentItem>(row);
    let tree = serde_json::from_str::<Value>(row);
    assert_eq!(read.is_ok(), tree.is_ok(), "{row}");
    let (Ok(read), Ok(tree)) = (read, tree) else { return };
    for kind in [ObjectKind::ProjectLogs, ObjectKind::Dataset, ObjectKind::ProjectPrompts] {
        let (read, tree) = (prepared_one(kind, read.clone()), prepared_one(kind, tree.clone()));
        let doc = read.as_ref().map(|row| text(&row.doc).to_owned());
        assert_eq!(read, tree, "{row}\n{doc:?}");
    }
}

#[test]
fn text_is_written_down_as_a_tree_would_be() {
    for value in [
        "null",
        "true",
        " 1 ",
        "1.0",
        "1e5",
        "-0",
        "-0.0",
        "1E+2",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "0.1",
        "1e400",
        "01",
        "NaN",
        r#""""#,
        r#""a\/b\u0041\n\"\\\u001f\u00fc""#,
        r#""\ud83d\ude00""#,
        r#""\ud800""#,
        "\"\u{7f}\u{2028}\"",
        "[]",
        "[ ]",
        "[1 , [ ] ,{ } ]",
        "{}",
        r#"{ "a" : { "b" : [ 1 ] } , "c":null}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"b":{"c":1,"c":{"c":2}},"\u0061":3}"#,
        r#"{"a":{"x":1},"b":{"x":1}}"#,
        "[1,]",
        "{\"a\"}",
        r#"{"a\"b":1,"a\\":{"":1,"":2}}"#,
    ] {
        for field in ["input", "output", "expected", "metadata", "context", "error", "scores", "other"] {
            for merge in ["", r#","_is_merge":true"#, r#","_array_delete":[{"path":["input"],"delete":[1]}]"#] {
                check_alike(&format!(r#"{{"id":"r",  "{field}" : {value}{merge}}}"#));
            }
        }
    }
}

#[test]
fn rows_with_fields_twice_or_of_other_shapes_are_judged_alike() {
    for row in [
        r#"{"id":"r","input":1,"output":2,"input":{"a":3}}"#,
        r#"{"id":"r","input":{"a":1,"a":2},"input":3}"#,
        r#"{"id":"r","input":3,"input":{"a":1,"a":2},"tags":["a"],"input":[4]}"#,
        r#"{"metadata":[1]}"#,
        r#"{"metadata":"x","id":"r"}"#,
        r#"{"metadata":null,"context":7}"#,
        r#"{"\u0069nput":1,"id":"r"}"#,
        r#"{"id":"r","_parent_id":"p","input":1,"created":"2026-01-01T00:00:00Z","span_parents":["x"]}"#,
        r#"{"id":"r","_object_delete":true,"input":{"a":1}}"#,
        r#"{"origin":{"id":"r"},"comment":{"text":"x"},"input":1}"#,
        "[1]",
        "\"x\"",
        "3",
        "-3",
        "3.5",
        "true",
        "null",
        "{",
    ] {
        check_alike(row);
    }
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let keys = |count: usize, twice: usize| {
        let keys = (0..count).map(|n| format!(r#""k{n}":{n}"#)).chain([format!(r#""k{twice}":"again""#)]);
        format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
    };
    let long = |bytes: usize| format!(r#"{{"{}":1}}"#, "k".repeat(bytes));
    for value in [
        nested(DEPTH_MAX - 1),
        nested(DEPTH_MAX),
        keys(15, 3),
        keys(16, 0),
        keys(17, 16),
        keys(100, 0),
        keys(100, 100),
        long(KEY_BYTES_MAX - 2),
        long(KEY_BYTES_MAX),
        long(KEY_BYTES_MAX + 1),
    ] {
        check_alike(&format!(r#"{{"id":"r","input":{value}}}"#));
        check_alike(&format!(r#"{{"id":"r","metadata":{{"x":{value}}}}}"#));
    }
}

#[test]
fn a_body_of_rows_is_read_from_under_its_name() {
    let read = |body: &str| {
        let mut from = serde_json::Deserializer::from_str(body);
        ListUnder::<SentItem>::new("rows", 2).deserialize(&mut from)
    };
    let row = |value: &str| serde_json::from_str::<SentItem>(value).expect("JSON");
    assert_eq!(
        read(r#"{"x":[{}],"rows":[{"input":1},2]}"#).unwrap(),
        BodyOfList::List(vec![row(r#"{"input":1}"#), row("2")])
    );
    assert_eq!(read(r#"{"rows":[1],"rows":null}"#).unwrap(), BodyOfList::Missing);
    assert_eq!(read(r#"{"rows":"x"}"#).unwrap(), BodyOfList::Other("x".into()));
    assert_eq!(read("7").unwrap(), BodyOfList::NoObject(7.into()));
    assert!(read(r#"{"rows":[],"x":1e999}"#).is_err());
    assert!(read(r#"{"rows":[],"x":"\ud800"}"#).is_err());
    assert_eq!(read(r#"{"rows":[1,2,{"input":3}]}"#).unwrap(), BodyOfList::TooMany(3));
    assert_eq!(read(r#"{"rows":[1,2,3],"rows":[]}"#).unwrap(), BodyOfList::List(Vec::new()));
    assert!(read(r#"{"rows":[1,2,3,"#).is_err());
}

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// An item that is counted when it is made.
#[derive(Debug, PartialEq)]
struct CountedItem;

impl<'de> Deserialize<'de> for CountedItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<CountedItem, D::Error> {
        IgnoredAny::deserialize(from)?;
        MADE.set(MADE.get() + 1);
        Ok(CountedItem)
    }
}

/// They were all made and then refused: a body of 12 MB took 2.5 GB.
#[test]
fn items_beyond_the_most_are_never_made() {
    let body = format!(r#"{{"rows":[{}1]}}"#, r#"{"input":1},"#.repeat(100_000));
    let mut from = serde_json::Deserializer::from_str(&body);
    let read = ListUnder::<CountedItem>::new("rows", 1000).deserialize(&mut from).unwrap();
    assert_eq!((read, MADE.get()), (BodyOfList::TooMany(100_001), 1000));
}

/// Any JSON, its keys few so that they meet.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|truth| truth.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_filter("JSON has no other", |n| n.is_finite()).prop_map(|number| format!("{number:e}")),
        ".{0,12}".prop_map(|text| Value::from(text).to_string()),
    ];
    let key = prop_oneof!["[a-c]", Just("\\u0061".to_owned()), Just("a\\n".to_owned())];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            prop::collection::vec((key.clone(), inner), 0..20).prop_map(|members| {
                let each: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\" :{value}")).collect();
                format!("{{{}}}", each.join(", "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_row_is_read_alike(input in any_json(), metadata in any_json(), other in any_json()) {
        check_alike(&format!(r#"{{"input":{input},"metadata":{metadata},"scores":{other},"id":"r","x":{other}}}"#));
    }
}
