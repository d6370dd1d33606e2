//! Long responses: bytes are returned early, and the held memory is bounded.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_query::render::{Format, RowWriter};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{column, table, written};

const GROUP_ROWS: usize = 128 << 10;
const GROUP_BYTES: usize = 16 << 20;
/// Upper bound of the held memory: a batch and the buffers of the encoders.
const SLACK_BYTES: usize = 8 << 20;
const AT_A_TIME: usize = 500;

fn columns() -> Vec<Column> {
    vec![column("n", Kinds::Integer), column("x", Kinds::Number), column("input", Kinds::Any)]
}

/// Returns rows with incompressible texts.
fn rows(from: usize, to: usize, text_bytes: usize) -> Vec<Vec<Value<'static>>> {
    let row = |n: usize| {
        let text = Value::Text(noise(n as u64, text_bytes).into());
        vec![Value::Integer(n as i64), Value::float(n as f64 / 2.0), text]
    };
    (from..to).map(row).collect()
}

/// Each character has six random bits.
fn noise(seed: u64, bytes: usize) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = seed;
    let mut text = String::with_capacity(bytes + 10);
    while text.len() < bytes {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        text.extend((0..10).map(|place| char::from(SIGNS[(bits >> (6 * place) & 63) as usize])));
    }
    text.truncate(bytes);
    text
}

struct Written {
    file: Vec<u8>,
    largest: usize,
    held: usize,
}

fn write(format: Format, count: usize, text_bytes: usize) -> Written {
    let mut writer = RowWriter::new(format, &columns()).expect("a writer");
    let mut all = Written { file: Vec::new(), largest: 0, held: 0 };
    for from in (0..count).step_by(AT_A_TIME) {
        let part = writer.rows(&table(&rows(from, count.min(from + AT_A_TIME), text_bytes))).expect("it is written");
        all.held = all.held.max(writer.held());
        all.largest = all.largest.max(part.len());
        all.file.extend(part);
    }
    let last = writer.finish().expect("an end");
    all.largest = all.largest.max(last.len());
    all.file.extend(last);
    all
}

fn check_file(file: Vec<u8>, count: usize, text_bytes: usize) -> Vec<usize> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).expect("a Parquet file");
    let groups = reader.metadata().row_groups().iter().map(|group| group.num_rows() as usize).collect();
    let (mut found, mut whole, mut half, mut bytes) = (0, 0, 0.0, 0);
    for batch in reader.build().expect("a reader") {
        let batch = batch.expect("a batch");
        found += batch.num_rows();
        whole += batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
        half += batch.column(1).as_primitive::<Float64Type>().values().iter().sum::<f64>();
        bytes += batch.column(2).as_string::<i32>().iter().flatten().map(str::len).sum::<usize>();
    }
    let sum = (count * (count - 1) / 2) as i64;
    // Bytes of a text with its quotes.
    assert_eq!((found, whole, half, bytes), (count, sum, sum as f64 / 2.0, count * (text_bytes + 2)));
    groups
}

#[test]
fn a_row_group_of_large_rows_ends_by_its_bytes() {
    const ROWS: usize = 40_000;
    const TEXT_BYTES: usize = 2000;
    let written = write(Format::Parquet, ROWS, TEXT_BYTES);
    assert!(written.held <= GROUP_BYTES + SLACK_BYTES, "{} bytes held", written.held);
    assert!(written.largest <= GROUP_BYTES + SLACK_BYTES, "{} bytes at once", written.largest);
    let groups = check_file(written.file, ROWS, TEXT_BYTES);
    assert!(groups.len() >= 3 && groups.iter().all(|rows| *rows < ROWS / 2), "{groups:?}");
}

#[test]
fn a_row_group_of_small_rows_ends_by_their_number() {
    const ROWS: usize = 300_000;
    let written = write(Format::Parquet, ROWS, 4);
    assert!(written.held < GROUP_BYTES, "{} bytes held", written.held);
    assert_eq!(check_file(written.file, ROWS, 4), [GROUP_ROWS, GROUP_ROWS, ROWS - 2 * GROUP_ROWS]);
}

/// One call with many rows writes the same as many calls. Only the pages of the files end at other rows.
#[test]
fn how_rows_come_makes_no_other_rows() {
    const ROWS: usize = 5000;
    const TEXT_BYTES: usize = 300;
    let rows = rows(0, ROWS, TEXT_BYTES);
    for at_a_time in [1, ROWS] {
        let file = written(Format::Parquet, &columns(), &rows, at_a_time).expect("it is written");
        assert_eq!(check_file(file, ROWS, TEXT_BYTES), [ROWS], "row groups of rows that come {at_a_time} at a time");
    }
}

#[test]
fn texts_leave_nothing_behind() {
    for format in [Format::Json, Format::JsonLines, Format::Csv] {
        let written = write(format, 20_000, 300);
        assert!(written.held < 1 << 10, "{format:?}: {} bytes held", written.held);
        assert!(written.largest < AT_A_TIME * 400, "{format:?}: {} bytes at once", written.largest);
        assert!(written.file.len() > 20_000 * 300);
    }
}
