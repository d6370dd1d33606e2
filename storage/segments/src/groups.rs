//! Parquet file of a segment. Each column is encoded as rows arrive, and a row group is written when it is full.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef};
use arrow_schema::SchemaRef;
use assay_storage_model::segment::{COLUMNAR_FORMAT, WHOLE_FORMAT};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use crate::blocks::SumWriter;
use crate::columnar::{RowIds, SHAPE_KEY, Splitter, Typed};
use crate::columns::{
    DOC_PAGE_BYTES, EVERYWHERE, GROUP_BYTES, GROUP_ROWS_MAX, PAGE_ROWS_MAX, all_but_documents, at, columnar_properties,
    columnar_schema, schema, writer_properties,
};
use crate::documents::Documents;
use crate::error::SegmentError;
use crate::sources::DocSource;
use crate::words::GroupWords;
use crate::writer::WriterOptions;

/// Size of documents in one row group of a columnar segment before compression. Longer columns are read faster.
const COLUMNAR_GROUP_BYTES: u64 = 128 << 20;

pub(crate) struct RowGroups {
    file: SerializedFileWriter<SumWriter>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// Writers of the open group in the order of the schema. The list is empty without an open group.
    columns: Vec<ArrowColumnWriter>,
    documents: Store,
    rows: usize,
    bytes: u64,
    /// Words of the columnar groups that were written.
    words: Vec<GroupWords>,
}

/// Buffer in which documents wait for the other columns of their rows.
#[derive(Debug)]
enum Store {
    /// Whole documents, which replace a writer of their column.
    Whole(Documents),
    Columnar(Box<Splitter>),
}

impl std::fmt::Debug for RowGroups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowGroups").field("rows", &self.rows).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl RowGroups {
    /// Creates a file with documents in one column.
    pub fn whole(file: SumWriter, options: WriterOptions) -> Result<RowGroups> {
        let documents = Documents::new(options.codec, DOC_PAGE_BYTES, PAGE_ROWS_MAX);
        RowGroups::new(file, schema(), writer_properties(options), Store::Whole(documents))
    }

    /// Creates a file with documents in many columns.
    pub fn columnar(file: SumWriter, typed: Vec<Typed>) -> Result<RowGroups> {
        let splitter = Splitter::new(typed);
        let (schema, properties) = (columnar_schema(splitter.shape()), columnar_properties(splitter.shape()));
        RowGroups::new(file, schema, properties, Store::Columnar(Box::new(splitter)))
    }

    fn new(
        file: SumWriter,
        schema: SchemaRef,
        properties: parquet::file::properties::WriterProperties,
        documents: Store,
    ) -> Result<RowGroups> {
        let columns = ArrowSchemaConverter::new().convert(&schema)?;
        let file = SerializedFileWriter::new(file, columns.root_schema_ptr(), Arc::new(properties))?;
        let factory = ArrowRowGroupWriterFactory::new(&file, Arc::clone(&schema));
        Ok(RowGroups { file, factory, schema, columns: Vec::new(), documents, rows: 0, bytes: 0, words: Vec::new() })
    }

    pub fn format(&self) -> u16 {
        match self.documents {
            Store::Whole(_) => WHOLE_FORMAT,
            Store::Columnar(_) => COLUMNAR_FORMAT,
        }
    }

    /// Adds the document of the next row, before the row's other columns.
    pub fn push_document(&mut self, doc: &[u8]) {
        match &mut self.documents {
            Store::Whole(documents) => documents.push(doc),
            Store::Columnar(splitter) => splitter.push(doc),
        }
    }

    /// Copies the documents of the next rows from another segment, and returns their size.
    pub fn copy_documents(&mut self, from: &mut DocSource, rows: Range<u32>) -> std::result::Result<u64, SegmentError> {
        match (&mut self.documents, from) {
            (Store::Whole(documents), DocSource::Pages(pages)) => documents.copy(pages, rows),
            (Store::Whole(documents), from) => from.each(rows, |doc| documents.push(doc)),
            (Store::Columnar(splitter), from) => from.each(rows, |doc| splitter.push(doc)),
        }
    }

    /// Writes rows as arrays, one for each column that every segment has except documents, which were added before.
    ///
    /// `bytes` is the size of documents, patches, rules and audit notes.
    pub fn write(&mut self, arrays: &[ArrayRef], bytes: u64) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        for (column, array) in all_but_documents().into_iter().zip(arrays) {
            write_column(&self.schema, &mut self.columns, column, array)?;
        }
        if let Store::Columnar(splitter) = &mut self.documents {
            let parts = splitter.take(said(arrays));
            for (column, array) in std::iter::once(at::DOC).chain(EVERYWHERE..).zip(&parts) {
                write_column(&self.schema, &mut self.columns, column, array)?;
            }
        }
        self.rows += arrays[at::KEY].len();
        self.bytes += bytes;
        let bytes_max = if self.format() == WHOLE_FORMAT { GROUP_BYTES } else { COLUMNAR_GROUP_BYTES };
        // The limits permit one more batch.
        if self.bytes >= bytes_max || self.rows >= GROUP_ROWS_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let doc_column = self.file.schema_descr().column(at::DOC);
        let mut group = self.file.next_row_group()?;
        for (column, writer) in self.columns.drain(..).enumerate() {
            match &mut self.documents {
                Store::Whole(documents) if column == at::DOC => {
                    let (chunk, close) = documents.close(Arc::clone(&doc_column))?;
                    group.append_column(&chunk, close)?;
                    documents.clear();
                }
                _ => writer.close()?.append_to_row_group(&mut group)?,
            }
        }
        group.close()?;
        if let Store::Columnar(splitter) = &mut self.documents {
            self.words.push(splitter.words.finish());
        }
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Writes the rest and the footer.
    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        if let Store::Columnar(splitter) = &self.documents {
            self.file.append_key_value_metadata(KeyValue::new(SHAPE_KEY.to_owned(), splitter.shape().encode()));
        }
        self.file.finish().map(drop)
    }

    /// Returns the words of groups that were written since the last call.
    pub fn take_words(&mut self) -> Vec<GroupWords> {
        std::mem::take(&mut self.words)
    }

    pub fn file(&self) -> &SumWriter {
        self.file.inner()
    }

    pub fn file_mut(&mut self) -> &mut SumWriter {
        self.file.inner_mut()
    }
}

fn write_column(schema: &SchemaRef, columns: &mut [ArrowColumnWriter], column: usize, array: &ArrayRef) -> Result<()> {
    for leaf in compute_leaves(schema.field(column), array)? {
        columns[column].write(&leaf)?;
    }
    Ok(())
}

/// Returns the columns of the rows that precede documents.
fn said(arrays: &[ArrayRef]) -> RowIds<'_> {
    RowIds {
        id: arrays[at::ID].as_string(),
        span_id: arrays[at::SPAN_ID].as_string(),
        root_span_id: arrays[at::ROOT_SPAN_ID].as_string(),
        is_root: arrays[at::IS_ROOT].as_boolean(),
        created: arrays[at::CREATED].as_primitive::<TimestampMicrosecondType>(),
    }
}
