//! Rows as an Arrow IPC stream: the schema, then a batch for each part of the rows.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema;
use assay_node_engine::Table;

use super::typed_array::{field, typed_array};
use super::{FormatError, check_width};

/// Metadata of a field with canonical JSON texts, since its type is unknown before its rows are read.
const ENCODING: (&str, &str) = ("assay.encoding", "json");

pub struct ArrowWriter {
    columns: Vec<schema::Column>,
    schema: SchemaRef,
    stream: StreamWriter<Vec<u8>>,
}

impl fmt::Debug for ArrowWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowWriter").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl ArrowWriter {
    pub fn new(columns: &[schema::Column]) -> Result<ArrowWriter, FormatError> {
        let schema = Arc::new(Schema::new(columns.iter().map(arrow_field).collect::<Vec<_>>()));
        let stream = StreamWriter::try_new(Vec::new(), &schema)?;
        Ok(ArrowWriter { columns: columns.to_vec(), schema, stream })
    }

    pub fn rows(&mut self, table: &Table) -> Result<Vec<u8>, FormatError> {
        check_width(table, self.columns.len())?;
        if !table.is_empty() {
            let arrays = self.columns.iter().zip(&table.cells).map(|(column, cells)| {
                let array = typed_array(column, cells)?;
                Ok(if is_json(column) { json_array(&array) } else { array })
            });
            let arrays = arrays.collect::<Result<Vec<_>, FormatError>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(table.len));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
            self.stream.write(&batch)?;
        }
        Ok(std::mem::take(self.stream.get_mut()))
    }

    pub fn finish(self) -> Result<Vec<u8>, FormatError> {
        Ok(self.stream.into_inner()?)
    }

    pub fn held(&self) -> usize {
        self.stream.get_ref().len()
    }
}

fn is_json(column: &schema::Column) -> bool {
    matches!(column.kinds, Kinds::Any | Kinds::Null)
}

fn arrow_field(column: &schema::Column) -> Field {
    if !is_json(column) {
        return field(column);
    }
    let metadata = HashMap::from([(ENCODING.0.to_owned(), ENCODING.1.to_owned())]);
    Field::new(&column.name, DataType::Binary, column.nullable).with_metadata(metadata)
}

fn json_array(texts: &ArrayRef) -> ArrayRef {
    Arc::new(BinaryArray::from(texts.as_string::<i32>().clone()))
}
