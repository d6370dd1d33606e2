//! Tests that parse rendered responses.

mod back;
mod golden;
mod long;
mod parquet;
mod values;

use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_query::Table;
use assay_node_query::render::{Format, FormatError, RowWriter};

fn column(name: &str, kinds: Kinds) -> Column {
    Column { name: name.into(), kinds, nullable: true }
}

/// Returns a table of rows, with as many columns as the first row.
fn table(rows: &[Vec<Value<'_>>]) -> Table {
    let width = rows.first().map_or(0, Vec::len);
    Table::from_rows((0..width).map(|column| column.to_string()).collect(), rows).expect("a table")
}

/// Renders a response. Its rows are appended `at_a_time`.
fn written(
    format: Format,
    columns: &[Column],
    rows: &[Vec<Value<'_>>],
    at_a_time: usize,
) -> Result<Vec<u8>, FormatError> {
    let mut writer = RowWriter::new(format, columns)?;
    let mut all = Vec::new();
    for part in rows.chunks(at_a_time) {
        all.extend(writer.rows(&table(part))?);
    }
    all.extend(writer.finish()?);
    Ok(all)
}

fn text(format: Format, columns: &[Column], rows: &[Vec<Value<'_>>], at_a_time: usize) -> String {
    let bytes = written(format, columns, rows, at_a_time).expect("it is written");
    String::from_utf8(bytes).expect("a text")
}
