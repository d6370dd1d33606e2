//! Tests that random JSON and CSV parse as the written values.

use assay_node_btql::values::Value;
use assay_node_query::render::Format;
use proptest::prelude::*;
use serde_json::Value as Tree;

use crate::text;
use crate::values::{SampleAnswer, answers, is, tree};

fn check_object(answer: &SampleAnswer, row: &[Value<'_>], read: &Tree) -> Result<(), TestCaseError> {
    let read = read.as_object().expect("an object");
    let names: Vec<_> = answer.columns.iter().map(|column| &column.name).collect();
    prop_assert_eq!(read.keys().collect::<Vec<_>>(), names);
    for (value, read) in row.iter().zip(read.values()) {
        prop_assert!(is(value, read), "{value:?} was read as {read}");
    }
    Ok(())
}

/// Parses records of fields. An empty field without quotes is `None`.
fn records(mut text: &str) -> Vec<Vec<Option<String>>> {
    let mut records = vec![vec![]];
    while !text.is_empty() {
        let (field, rest) = field(text);
        records.last_mut().expect("a record").push(field);
        if let Some(rest) = rest.strip_prefix("\r\n") {
            records.push(vec![]);
            text = rest;
        } else {
            text = rest.strip_prefix(',').expect("a comma, or the end of a record");
            assert!(!text.is_empty(), "the last record has an end");
        }
    }
    assert_eq!(records.pop(), Some(vec![]), "the last record has an end");
    records
}

fn field(text: &str) -> (Option<String>, &str) {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\r']).expect("an end");
        let (field, rest) = text.split_at(end);
        assert!(!field.contains(['"', '\n']), "{field:?} without quotes");
        return ((!field.is_empty()).then(|| field.to_owned()), rest);
    };
    let mut field = String::new();
    loop {
        let (part, after) = rest.split_once('"').expect("a closing quote");
        field.push_str(part);
        let Some(more) = after.strip_prefix('"') else { return (Some(field), after) };
        field.push('"');
        rest = more;
    }
}

fn check_field(value: &Value<'_>, read: Option<&str>) -> Result<(), TestCaseError> {
    let expected = match value {
        Value::List(_) | Value::Members(_) => {
            let read: Tree = serde_json::from_str(read.unwrap_or_default()).expect("JSON");
            prop_assert_eq!(tree(value), read);
            return Ok(());
        }
        Value::Float(number) => {
            prop_assert_eq!(read.and_then(|read| read.parse::<f64>().ok()), Some(*number));
            return Ok(());
        }
        other => other.to_text(),
    };
    prop_assert_eq!(expected.as_deref(), read);
    Ok(())
}

proptest! {
    #[test]
    fn json_reads_back(answer in answers(), at_a_time in 1_usize..5) {
        let read: Tree = serde_json::from_str(&text(Format::Json, &answer.columns, &answer.rows, at_a_time)).expect("JSON");
        let read = read.as_array().expect("an array");
        prop_assert_eq!(read.len(), answer.rows.len());
        for (row, read) in answer.rows.iter().zip(read) {
            check_object(&answer, row, read)?;
        }
    }

    #[test]
    fn json_lines_read_back_a_line_at_a_time(answer in answers(), at_a_time in 1_usize..5) {
        let text = text(Format::JsonLines, &answer.columns, &answer.rows, at_a_time);
        prop_assert_eq!(text.matches('\n').count(), answer.rows.len());
        for (row, line) in answer.rows.iter().zip(text.split_terminator('\n')) {
            check_object(&answer, row, &serde_json::from_str(line).expect("JSON"))?;
        }
    }

    #[test]
    fn csv_reads_back(answer in answers(), at_a_time in 1_usize..5) {
        let records = records(&text(Format::Csv, &answer.columns, &answer.rows, at_a_time));
        prop_assert_eq!(records.len(), answer.rows.len() + 1);
        for (column, name) in answer.columns.iter().zip(&records[0]) {
            prop_assert_eq!(Some(&column.name), name.as_ref());
        }
        for (row, record) in answer.rows.iter().zip(&records[1..]) {
            prop_assert_eq!(row.len(), record.len());
            for (value, read) in row.iter().zip(record) {
                check_field(value, read.as_deref())?;
            }
        }
    }
}
