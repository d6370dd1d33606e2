//! The Parquet file of a segment, row group by row group: each column is encoded as rows come and written when the
//! group is full.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;

use crate::blocks::SumWriter;
use crate::columns::{
    DOC_PAGE_BYTES, GROUP_BYTES, GROUP_ROWS_MAX, PAGE_ROWS_MAX, all_but_documents, at, schema, writer_properties,
};
use crate::documents::Documents;
use crate::writer::WriterOptions;

pub(crate) struct RowGroups {
    file: SerializedFileWriter<SumWriter>,
    factory: ArrowRowGroupWriterFactory,
    /// Of the open group, in the order of the schema; empty if there is none.
    columns: Vec<ArrowColumnWriter>,
    /// In place of their column's writer.
    documents: Documents,
    rows: usize,
    bytes: u64,
}

impl std::fmt::Debug for RowGroups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowGroups").field("rows", &self.rows).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl RowGroups {
    pub fn new(file: SumWriter, options: WriterOptions) -> Result<RowGroups> {
        let properties = Arc::new(writer_properties(options));
        let columns = ArrowSchemaConverter::new().convert(&schema())?;
        let file = SerializedFileWriter::new(file, columns.root_schema_ptr(), properties)?;
        let factory = ArrowRowGroupWriterFactory::new(&file, schema());
        let documents = Documents::new(options.codec, DOC_PAGE_BYTES, PAGE_ROWS_MAX);
        Ok(RowGroups { file, factory, columns: Vec::new(), documents, rows: 0, bytes: 0 })
    }

    /// Where the documents of the next rows go, before the rows' other columns.
    pub fn documents(&mut self) -> &mut Documents {
        &mut self.documents
    }

    /// Rows as arrays, one for each column but that of the documents, which are taken already. `bytes`: of documents,
    /// patches, rules and audit notes.
    pub fn write(&mut self, arrays: &[ArrayRef], bytes: u64) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        for (column, array) in all_but_documents().into_iter().zip(arrays) {
            for leaf in compute_leaves(schema().field(column), array)? {
                self.columns[column].write(&leaf)?;
            }
        }
        self.rows += arrays[at::KEY].len();
        self.bytes += bytes;
        // A batch more than these is what the limits allow.
        if self.bytes >= GROUP_BYTES || self.rows >= GROUP_ROWS_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let doc_column = self.file.schema_descr().column(at::DOC);
        let mut group = self.file.next_row_group()?;
        for (column, writer) in self.columns.drain(..).enumerate() {
            if column == at::DOC {
                let (chunk, close) = self.documents.close(Arc::clone(&doc_column))?;
                group.append_column(&chunk, close)?;
                self.documents.clear();
            } else {
                writer.close()?.append_to_row_group(&mut group)?;
            }
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Writes what is left, and the footer.
    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.file.finish().map(drop)
    }

    pub fn file(&self) -> &SumWriter {
        self.file.inner()
    }

    pub fn file_mut(&mut self) -> &mut SumWriter {
        self.file.inner_mut()
    }
}
