//! The Parquet file of a segment, row group by row group: each column is encoded as rows come and written when the
//! group is full.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedFileWriter;

use crate::blocks::SumWriter;
use crate::columns::{DOC_PAGE_BYTES, GROUP_BYTES, GROUP_ROWS_MAX, PAGE_ROWS_MAX, at, schema, writer_properties};
use crate::documents::Documents;
use crate::writer::WriterOptions;

pub(crate) struct RowGroups {
    file: SerializedFileWriter<SumWriter>,
    factory: ArrowRowGroupWriterFactory,
    /// Of the open group, in the order of the schema; empty if there is none.
    columns: Vec<ArrowColumnWriter>,
    /// In place of their column's writer if they are not compressed.
    documents: Option<Documents>,
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
        let plain = properties.compression(columns.column(at::DOC).path()) == Compression::UNCOMPRESSED;
        let file = SerializedFileWriter::new(file, columns.root_schema_ptr(), properties)?;
        let factory = ArrowRowGroupWriterFactory::new(&file, schema());
        let documents = plain.then(|| Documents::new(DOC_PAGE_BYTES, PAGE_ROWS_MAX));
        Ok(RowGroups { file, factory, columns: Vec::new(), documents, rows: 0, bytes: 0 })
    }

    /// Whether the document of the next row was taken; if not, it has to come with its batch.
    pub fn take_document(&mut self, doc: &[u8]) -> bool {
        let Some(documents) = &mut self.documents else { return false };
        documents.push(doc);
        true
    }

    /// Rows as arrays, whose documents have been taken or are among them. `bytes`: of documents, patches, rules and
    /// audit notes.
    pub fn write(&mut self, arrays: &[ArrayRef], bytes: u64) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        for (column, (array, writer)) in arrays.iter().zip(&mut self.columns).enumerate() {
            if column == at::DOC && self.documents.is_some() {
                continue;
            }
            for leaf in compute_leaves(schema().field(column), array)? {
                writer.write(&leaf)?;
            }
        }
        self.rows += arrays[at::KEY].len();
        self.bytes += bytes;
        // A batch more than these is what the limits allow.
        if self.bytes >= GROUP_BYTES || self.rows >= GROUP_ROWS_MAX { self.flush() } else { Ok(()) }
    }

    /// As [`write`](Self::write), with the documents.
    pub fn write_all(&mut self, arrays: &[ArrayRef], bytes: u64) -> Result<()> {
        if let Some(documents) = &mut self.documents {
            let docs = arrays[at::DOC].as_any().downcast_ref::<BinaryArray>();
            let docs = docs.ok_or_else(|| ParquetError::General("documents are not bytes".to_owned()))?;
            (0..docs.len()).for_each(|index| documents.push(docs.value(index)));
        }
        self.write(arrays, bytes)
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let doc_column = self.file.schema_descr().column(at::DOC);
        let mut group = self.file.next_row_group()?;
        for (column, writer) in self.columns.drain(..).enumerate() {
            match &mut self.documents {
                Some(documents) if column == at::DOC => {
                    let (chunk, close) = documents.close(Arc::clone(&doc_column))?;
                    group.append_column(&chunk, close)?;
                    documents.clear();
                }
                _ => writer.close()?.append_to_row_group(&mut group)?,
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
