//! Tests of Parquet with the library's own reader, and of values that do not fit.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_query::render::{Format, FormatError};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::{Value as Tree, json};

use crate::values::{answers, is, tree};
use crate::{column, written};

pub fn read(file: Vec<u8>) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).expect("a Parquet file");
    reader.build().expect("a reader").collect::<Result<_, _>>().expect("batches")
}

fn type_of(kinds: Kinds) -> DataType {
    match kinds {
        Kinds::Boolean => DataType::Boolean,
        Kinds::Integer => DataType::Int64,
        Kinds::Number => DataType::Float64,
        Kinds::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Kinds::Texts => DataType::new_list(DataType::Utf8, true),
        Kinds::Text | Kinds::Interval | Kinds::Any | Kinds::Null => DataType::Utf8,
    }
}

fn check_cell(column: &Column, value: &Value<'_>, array: &ArrayRef, row: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(array.is_null(row), value.is_null());
    if value.is_null() {
        return Ok(());
    }
    match column.kinds {
        Kinds::Boolean => prop_assert_eq!(&Value::Boolean(array.as_boolean().value(row)), value),
        Kinds::Integer => prop_assert_eq!(&Value::Integer(array.as_primitive::<Int64Type>().value(row)), value),
        Kinds::Number => prop_assert_eq!(Some(array.as_primitive::<Float64Type>().value(row)), value.as_f64()),
        Kinds::Time => {
            prop_assert_eq!(Some(array.as_primitive::<TimestampMicrosecondType>().value(row)), value.as_time());
        }
        Kinds::Texts => {
            let list = array.as_list::<i32>().value(row);
            prop_assert_eq!(json!(list.as_string::<i32>().iter().collect::<Vec<_>>()), tree(value));
        }
        Kinds::Text | Kinds::Interval => prop_assert_eq!(json!(array.as_string::<i32>().value(row)), tree(value)),
        Kinds::Any | Kinds::Null => {
            let read: Tree = serde_json::from_str(array.as_string::<i32>().value(row)).expect("JSON");
            prop_assert!(is(value, &read), "{value:?} was read as {read}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn parquet_reads_back(answer in answers(), at_a_time in 1_usize..5) {
        let file = written(Format::Parquet, &answer.columns, &answer.rows, at_a_time).expect("it is written");
        let batches = read(file);
        prop_assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), answer.rows.len());
        for batch in &batches {
            for ((place, column), field) in answer.columns.iter().enumerate().zip(batch.schema().fields()) {
                prop_assert_eq!((&column.name, column.nullable), (field.name(), field.is_nullable()));
                prop_assert_eq!(&type_of(column.kinds), field.data_type());
                for (row, values) in answer.rows.iter().enumerate() {
                    check_cell(column, &values[place], batch.column(place), row)?;
                }
            }
        }
    }
}

#[test]
fn an_answer_without_rows_has_its_columns() {
    let file = written(Format::Parquet, &[column("n", Kinds::Integer)], &[], 1).expect("it is written");
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).expect("a Parquet file");
    assert_eq!(reader.schema().field(0).name(), "n");
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
}

fn of(kinds: Kinds, value: Value<'_>) -> Result<RecordBatch, FormatError> {
    let file = written(Format::Parquet, &[column("c", kinds)], &[vec![value]], 1)?;
    Ok(read(file).remove(0))
}

#[track_caller]
fn refused(kinds: Kinds, value: Value<'_>, expected: &str) {
    let error = of(kinds, value).expect_err("it does not fit");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_does_not_fit_is_named() {
    let text = || Value::Text("high".into());
    refused(Kinds::Number, text(), r#"column `c` is of numbers, and has "high""#);
    refused(Kinds::Number, Value::Boolean(true), "column `c` is of numbers, and has true");
    refused(Kinds::Integer, Value::Float(0.5), "column `c` is of whole numbers, and has 0.5");
    refused(
        Kinds::Integer,
        Value::Unsigned(u64::MAX),
        "column `c` has 18446744073709551615, which a signed integer of 64 bits does not hold: cast it to text or number",
    );
    refused(Kinds::Boolean, Value::Integer(1), "column `c` is of booleans, and has 1");
    refused(Kinds::Time, text(), r#"column `c` is of times, and has "high""#);
    refused(Kinds::Texts, text(), r#"column `c` is of arrays of texts, and has "high""#);
    let long = Value::Text("x".repeat(1000).into());
    let quoted = format!("column `c` is of numbers, and has \"{}...", "x".repeat(79));
    refused(Kinds::Number, long, &quoted);
    let counts = [Column { nullable: false, ..column("n", Kinds::Integer) }];
    let error = written(Format::Parquet, &counts, &[vec![Value::Null]], 1).expect_err("a null");
    assert_eq!(error.to_string(), "column `n` was to have no null");
}

#[test]
fn what_can_be_said_otherwise_is_said() {
    let text = |kinds, value| of(kinds, value).expect("it fits").column(0).as_string::<i32>().value(0).to_owned();
    assert_eq!(text(Kinds::Text, Value::Integer(5)), "5");
    assert_eq!(text(Kinds::Text, Value::Array("[1]".into())), "[1]");
    assert_eq!(text(Kinds::Null, Value::Text("x".into())), "\"x\"");
    let time = of(Kinds::Time, Value::Text("1970-01-01T00:00:01+00:00".into())).expect("it fits");
    assert_eq!(time.column(0).as_primitive::<TimestampMicrosecondType>().value(0), 1_000_000);
    let list = of(Kinds::Texts, Value::Array(r#"["a",null,1,{"b":2}]"#.into())).expect("it fits");
    let list = list.column(0).as_list::<i32>().value(0);
    assert_eq!(list.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a"), None, Some("1"), Some(r#"{"b":2}"#)]);
}

/// A whole number beyond 2^53 is rounded to the nearest double.
#[test]
fn whole_numbers_beyond_a_double_are_rounded_where_numbers_are_promised() {
    let number = |value| of(Kinds::Number, value).expect("it fits").column(0).as_primitive::<Float64Type>().value(0);
    assert_eq!(number(Value::Integer((1 << 53) + 1)), (1_u64 << 53) as f64);
    assert_eq!(number(Value::Unsigned(u64::MAX)), u64::MAX as f64);
}
