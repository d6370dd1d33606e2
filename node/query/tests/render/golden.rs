//! Expected texts of responses, byte by byte.

use assay_node_btql::ast::{Interval, Unit};
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_query::Table;
use assay_node_query::render::{Format, FormatError, RowWriter};

use crate::{column, text, written};

fn no_rows(columns: &[Column]) -> Table {
    Table::from_rows(columns.iter().map(|column| column.name.clone()).collect(), &[]).expect("a table")
}

const SECOND: i64 = 1_700_000_000_000_000;

fn columns() -> Vec<Column> {
    let of = |name, kinds| column(name, kinds);
    vec![
        of("id", Kinds::Text),
        of("say \"n\"", Kinds::Integer),
        of("x, y", Kinds::Number),
        of("input", Kinds::Any),
        of("tags", Kinds::Texts),
        of("at", Kinds::Time),
    ]
}

fn rows() -> Vec<Vec<Value<'static>>> {
    let text = |text: &'static str| Value::Text(text.into());
    vec![
        vec![
            text("a"),
            Value::Integer(-3),
            Value::Float(0.5),
            Value::Object(r#"{"q":"1, 2\n","deep":[null]}"#.into()),
            Value::Array(r#"["p","q"]"#.into()),
            Value::Stored(SECOND),
        ],
        vec![text(""), Value::Null, Value::Integer(7), Value::Null, Value::Null, Value::Null],
        vec![
            text("line\r\n\"two\", \u{1}é"),
            Value::Unsigned(u64::MAX),
            Value::Float(1e300),
            text("5"),
            Value::List(vec![text("x"), Value::Null]),
            Value::Time(SECOND),
        ],
        vec![
            Value::Xact(1_000_196_000_000_000_001),
            Value::Integer(0),
            Value::Null,
            Value::Members(vec![("k".into(), Value::Boolean(true))]),
            Value::Array("[]".into()),
            Value::Interval(Interval { value: 7, unit: Unit::Day }),
        ],
    ]
}

const OBJECTS: [&str; 4] = [
    r#"{"id":"a","say \"n\"":-3,"x, y":0.5,"input":{"q":"1, 2\n","deep":[null]},"tags":["p","q"],"at":"2023-11-14T22:13:20.000Z"}"#,
    r#"{"id":"","say \"n\"":null,"x, y":7,"input":null,"tags":null,"at":null}"#,
    r#"{"id":"line\r\n\"two\", \u0001é","say \"n\"":18446744073709551615,"x, y":1e+300,"input":"5","tags":["x",null],"at":"2023-11-14T22:13:20Z"}"#,
    r#"{"id":"1000196000000000001","say \"n\"":0,"x, y":null,"input":{"k":true},"tags":[],"at":"7 day"}"#,
];

const RECORDS: &str = concat!(
    "id,\"say \"\"n\"\"\",\"x, y\",input,tags,at\r\n",
    "a,-3,0.5,\"{\"\"q\"\":\"\"1, 2\\n\"\",\"\"deep\"\":[null]}\",\"[\"\"p\"\",\"\"q\"\"]\",2023-11-14T22:13:20.000Z\r\n",
    "\"\",,7,,,\r\n",
    "\"line\r\n\"\"two\"\", \u{1}é\",18446744073709551615,1e+300,5,\"[\"\"x\"\",null]\",2023-11-14T22:13:20Z\r\n",
    "1000196000000000001,0,,\"{\"\"k\"\":true}\",[],7 day\r\n",
);

#[test]
fn json_is_an_array_of_objects_however_its_rows_come() {
    for at_a_time in 1..=4 {
        let expected = format!("[{}]", OBJECTS.join(","));
        assert_eq!(text(Format::Json, &columns(), &rows(), at_a_time), expected);
    }
}

#[test]
fn json_lines_end_each_with_a_line_break() {
    let expected: String = OBJECTS.map(|object| format!("{object}\n")).concat();
    assert_eq!(text(Format::JsonLines, &columns(), &rows(), 3), expected);
}

#[test]
fn csv_tells_null_from_the_empty_text() {
    for at_a_time in 1..=4 {
        assert_eq!(text(Format::Csv, &columns(), &rows(), at_a_time), RECORDS);
    }
}

#[test]
fn an_answer_without_rows_is_one() {
    let empty = |format| text(format, &columns(), &[], 1);
    assert_eq!(empty(Format::Json), "[]");
    assert_eq!(empty(Format::JsonLines), "");
    assert_eq!(empty(Format::Csv), RECORDS[..RECORDS.find("\r\n").expect("a header") + 2]);
    let mut writer = RowWriter::new(Format::Json, &columns()).expect("a writer");
    assert_eq!(writer.rows(&no_rows(&columns())).expect("no rows"), b"");
    assert_eq!(writer.finish().expect("an end"), b"[]");
}

#[test]
fn rows_without_columns_are_empty_objects() {
    assert_eq!(text(Format::Json, &[], &[vec![], vec![]], 1), "[{},{}]");
}

#[test]
fn what_does_not_match_its_columns_is_refused_in_every_format() {
    for format in Format::ALL {
        let two = [column("a", Kinds::Any), column("b", Kinds::Any), column("a", Kinds::Text)];
        assert!(matches!(RowWriter::new(format, &two), Err(FormatError::Twice(name)) if name == "a"));
        let error = written(format, &two[..2], &[vec![Value::Null]], 1);
        assert!(matches!(error, Err(FormatError::Width { expected: 2, found: 1 })), "{format:?}");
    }
}
