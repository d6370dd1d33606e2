//! Columns that every segment has, and their conversion to arrow batches and parquet pages and back.
//!
//! `columnar` has the additional columns of a columnar segment.
//!
//! | column | type | pages |
//! |---|---|---|
//! | object | fixed 34 bytes | dictionary: one value for long runs |
//! | key, xact, end, created | u64, u64, u64?, timestamp in microseconds without zone | delta: neighbours are close |
//! | action, is_root | u8, bool | dictionary, bits |
//! | id, span_id, root_span_id | text | plain, small pages for lookups |
//! | doc, patch, rules, audit | bytes (JSON text), the last three nullable | plain, pages of 64 KiB; see `documents` |
//!
//! In columnar segments, doc is nullable too, because most documents are stored as parts.
//!
//! Statistics by page exist where a scan can use them: object, key, xact, created.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, StringBuilder, TimestampMicrosecondBuilder, UInt8Builder,
    UInt64Builder,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt8Array, UInt64Array,
};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use assay_storage_model::command::Action;
use assay_storage_model::segment::{COLUMNAR_FORMAT, WHOLE_FORMAT};
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::columnar::{Parts, RowIds, Shape};
use crate::error::SegmentError;
use crate::row::{Columns, OwnedRow, RowHeader, VersionRow};
use crate::writer::{Codec, WriterOptions};

/// Size of a page of documents before compression, which one lookup decodes.
pub(crate) const DOC_PAGE_BYTES: usize = 64 << 10;
/// Size of a page of a field's texts in a columnar segment, before compression.
///
/// Longer pages compress better, and a lookup decodes one page of each field.
const TEXT_PAGE_BYTES: usize = 512 << 10;
/// Compression level of texts in final segments.
///
/// Higher levels cost more than they save: storage/decisions/0009 has the figures.
const TEXT_LEVEL: i32 = 9;
/// Size of a page of any other column before compression.
const SMALL_PAGE_BYTES: usize = 16 << 10;
/// Number of rows in one page of any column.
pub(crate) const PAGE_ROWS_MAX: usize = 2048;
/// Number of rows in one row group, exceeded by less than one batch.
pub(crate) const GROUP_ROWS_MAX: usize = 64 << 10;
/// Size of documents, patches, rules and audit notes in a row group before compression, exceeded by at most one batch.
pub(crate) const GROUP_BYTES: u64 = 32 << 20;
/// Upper bound of the size of a value. Writes are far smaller.
pub(crate) const VALUE_BYTES_MAX: usize = 512 << 20;

const OBJECT_BYTES: i32 = ObjectKey::BYTES as i32;

/// Positions of the columns in [`schema`].
pub(crate) mod at {
    pub const OBJECT: usize = 0;
    pub const KEY: usize = 1;
    pub const XACT: usize = 2;
    pub const END: usize = 3;
    pub const ACTION: usize = 4;
    pub const ID: usize = 5;
    pub const SPAN_ID: usize = 6;
    pub const ROOT_SPAN_ID: usize = 7;
    pub const IS_ROOT: usize = 8;
    pub const CREATED: usize = 9;
    pub const DOC: usize = 10;
    pub const PATCH: usize = 11;
    pub const RULES: usize = 12;
    pub const AUDIT: usize = 13;
}

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    let nullable = |name: &str, kind: DataType| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        field("object", DataType::FixedSizeBinary(OBJECT_BYTES)),
        field("key", DataType::UInt64),
        field("xact", DataType::UInt64),
        nullable("end", DataType::UInt64),
        field("action", DataType::UInt8),
        field("id", DataType::Utf8),
        field("span_id", DataType::Utf8),
        field("root_span_id", DataType::Utf8),
        field("is_root", DataType::Boolean),
        field("created", DataType::Timestamp(TimeUnit::Microsecond, None)),
        field("doc", DataType::Binary),
        nullable("patch", DataType::Binary),
        nullable("rules", DataType::Binary),
        nullable("audit", DataType::Binary),
    ]))
});

/// Number of columns that every segment has.
pub(crate) const EVERYWHERE: usize = at::AUDIT + 1;

/// Returns the positions of all columns except documents.
pub(crate) fn all_but_documents() -> Vec<usize> {
    (0..EVERYWHERE).filter(|column| *column != at::DOC).collect()
}

/// Returns the columns that every segment has, in order.
pub fn schema() -> SchemaRef {
    Arc::clone(&SCHEMA)
}

/// Returns the columns of a columnar segment of this shape, in order.
pub(crate) fn columnar_schema(shape: &Shape) -> SchemaRef {
    let mut fields: Vec<FieldRef> = SCHEMA.fields().iter().cloned().collect();
    fields[at::DOC] = Arc::new(SCHEMA.field(at::DOC).clone().with_nullable(true));
    fields.extend(shape.columns());
    Arc::new(Schema::new(fields))
}

/// Returns the positions of the columns that a read returns, in a segment of this shape.
pub(crate) fn projection(what: Columns, shape: Option<&Shape>) -> Vec<usize> {
    let everywhere = match what {
        Columns::Keys => (0..at::DOC).collect(),
        Columns::Docs => (0..at::PATCH).collect(),
        Columns::Audits => (0..at::DOC).chain([at::AUDIT]).collect(),
        Columns::All => (0..EVERYWHERE).collect::<Vec<_>>(),
    };
    let parts = match (what, shape) {
        (Columns::Docs | Columns::All, Some(shape)) => shape.parts_at().collect(),
        _ => Vec::new(),
    };
    everywhere.into_iter().chain(parts).collect()
}

fn path(column: usize) -> ColumnPath {
    ColumnPath::from(SCHEMA.field(column).name().as_str())
}

/// Returns the properties of a segment with whole documents.
pub(crate) fn writer_properties(options: WriterOptions) -> WriterProperties {
    // The other columns are small beside the documents. Those of tier 0 are compressed by the first merge.
    let compression = match options.codec {
        Codec::Lz4 if options.tier > 0 => Compression::LZ4_RAW,
        _ => Compression::UNCOMPRESSED,
    };
    properties(WHOLE_FORMAT).set_compression(compression).build()
}

/// Returns the properties of a columnar segment, which merges rarely rewrite.
pub(crate) fn columnar_properties(shape: &Shape) -> WriterProperties {
    let hard = Compression::ZSTD(ZstdLevel::try_new(TEXT_LEVEL).expect("a level that there is"));
    let usual = Compression::ZSTD(ZstdLevel::default());
    let mut properties = properties(COLUMNAR_FORMAT).set_compression(Compression::LZ4_RAW);
    for column in [at::ID, at::SPAN_ID, at::ROOT_SPAN_ID, at::DOC, at::PATCH, at::RULES, at::AUDIT] {
        properties = properties.set_column_compression(path(column), usual);
    }
    let columns = shape.columns();
    let path = |column: &FieldRef| ColumnPath::from(column.name().as_str());
    for column in [&SCHEMA.fields()[at::DOC]].into_iter().chain(&columns[1..=shape.fields.len()]) {
        properties = properties
            .set_column_compression(path(column), hard)
            .set_column_data_page_size_limit(path(column), TEXT_PAGE_BYTES);
    }
    properties = properties.set_column_dictionary_enabled(path(&columns[0]), true);
    for column in &columns[shape.fields.len() + 1..] {
        properties = properties
            .set_column_dictionary_enabled(path(column), true)
            .set_column_statistics_enabled(path(column), EnabledStatistics::Chunk)
            .set_column_data_page_size_limit(path(column), DOC_PAGE_BYTES);
        // These encodings apply if a dictionary would be too large. Some bytes of floats differ while others are alike.
        properties = match column.data_type() {
            DataType::Utf8 => properties.set_column_compression(path(column), usual),
            DataType::Float64 => properties
                .set_column_encoding(path(column), Encoding::BYTE_STREAM_SPLIT)
                .set_column_compression(path(column), usual),
            DataType::Int64 => properties.set_column_encoding(path(column), Encoding::DELTA_BINARY_PACKED),
            _ => properties,
        };
    }
    properties.build()
}

fn properties(format: u16) -> WriterPropertiesBuilder {
    let order = [(at::OBJECT, false), (at::KEY, true), (at::XACT, true)];
    let sorting =
        order.map(|(column, descending)| SortingColumn { column_idx: column as i32, descending, nulls_first: false });
    let mut properties = WriterProperties::builder()
        .set_created_by("assay".to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new("assay.format".to_owned(), format.to_string())]))
        .set_sorting_columns(Some(sorting.to_vec()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_row_count_limit(PAGE_ROWS_MAX)
        .set_data_page_size_limit(SMALL_PAGE_BYTES);
    for column in [at::OBJECT, at::ACTION] {
        properties = properties.set_column_dictionary_enabled(path(column), true);
    }
    for column in [at::KEY, at::XACT, at::END, at::CREATED] {
        properties = properties.set_column_encoding(path(column), Encoding::DELTA_BINARY_PACKED);
    }
    for column in [at::OBJECT, at::KEY, at::XACT, at::CREATED] {
        properties = properties.set_column_statistics_enabled(path(column), EnabledStatistics::Page);
    }
    properties.set_column_data_page_size_limit(path(at::PATCH), DOC_PAGE_BYTES)
}

/// Buffer of rows that become a batch.
#[derive(Debug)]
pub(crate) struct Pending {
    object: FixedSizeBinaryBuilder,
    key: UInt64Builder,
    xact: UInt64Builder,
    end: UInt64Builder,
    action: UInt8Builder,
    id: StringBuilder,
    span_id: StringBuilder,
    root_span_id: StringBuilder,
    is_root: BooleanBuilder,
    created: TimestampMicrosecondBuilder,
    patch: BinaryBuilder,
    rules: BinaryBuilder,
    audit: BinaryBuilder,
    bytes: usize,
}

impl Pending {
    pub fn new() -> Pending {
        Pending {
            object: FixedSizeBinaryBuilder::new(OBJECT_BYTES),
            key: UInt64Builder::new(),
            xact: UInt64Builder::new(),
            end: UInt64Builder::new(),
            action: UInt8Builder::new(),
            id: StringBuilder::new(),
            span_id: StringBuilder::new(),
            root_span_id: StringBuilder::new(),
            is_root: BooleanBuilder::new(),
            created: TimestampMicrosecondBuilder::new(),
            patch: BinaryBuilder::new(),
            rules: BinaryBuilder::new(),
            audit: BinaryBuilder::new(),
            bytes: 0,
        }
    }

    pub fn rows(&self) -> usize {
        self.key.values_slice().len()
    }

    /// Returns the bytes of all values of variable length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Checks that every value of the row is short enough.
    pub fn check(row: &VersionRow<'_>) -> Result<(), SegmentError> {
        if sizes(row).iter().any(|&size| size > VALUE_BYTES_MAX) {
            return Err(SegmentError::TooLarge { what: "bytes in a value", limit: VALUE_BYTES_MAX as u64 });
        }
        Ok(())
    }

    /// Adds a checked row, without its document.
    pub fn push(&mut self, row: &VersionRow<'_>) {
        self.object.append_value(row.object.to_bytes()).expect("34 bytes go into 34");
        self.key.append_value(row.key.0);
        self.xact.append_value(row.xact.0);
        self.end.append_option(row.end.map(|end| end.0));
        self.action.append_value(row.action as u8);
        self.id.append_value(row.id);
        self.span_id.append_value(row.span_id);
        self.root_span_id.append_value(row.root_span_id);
        self.is_root.append_value(row.is_root);
        self.created.append_value(row.created);
        self.patch.append_option(row.patch);
        self.rules.append_option(row.rules);
        self.audit.append_option(row.audit);
        self.bytes += sizes(row).iter().sum::<usize>();
    }

    /// Returns all rows pushed since the last call, in the order of the schema, without the documents.
    pub fn take(&mut self) -> Vec<ArrayRef> {
        self.bytes = 0;
        vec![
            Arc::new(self.object.finish()),
            Arc::new(self.key.finish()),
            Arc::new(self.xact.finish()),
            Arc::new(self.end.finish()),
            Arc::new(self.action.finish()),
            Arc::new(self.id.finish()),
            Arc::new(self.span_id.finish()),
            Arc::new(self.root_span_id.finish()),
            Arc::new(self.is_root.finish()),
            Arc::new(self.created.finish()),
            Arc::new(self.patch.finish()),
            Arc::new(self.rules.finish()),
            Arc::new(self.audit.finish()),
        ]
    }
}

/// Returns the lengths of all values of variable length.
fn sizes(row: &VersionRow<'_>) -> [usize; 7] {
    let length = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
    [
        row.id.len(),
        row.span_id.len(),
        row.root_span_id.len(),
        row.doc.len(),
        length(row.patch),
        length(row.rules),
        length(row.audit),
    ]
}

/// Typed columns of a batch. They are cheap to make and to clone, because arrays are shared.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub object: FixedSizeBinaryArray,
    pub key: UInt64Array,
    pub xact: UInt64Array,
    pub end: UInt64Array,
    pub action: UInt8Array,
    pub id: StringArray,
    pub span_id: StringArray,
    pub root_span_id: StringArray,
    pub is_root: BooleanArray,
    pub created: TimestampMicrosecondArray,
    pub doc: Option<BinaryArray>,
    pub patch: Option<BinaryArray>,
    pub rules: Option<BinaryArray>,
    pub audit: Option<BinaryArray>,
    /// Parts from which documents are assembled, if they are not in `doc`.
    pub parts: Option<Parts>,
}

impl View {
    /// Creates a view of a batch. An error names `file` if a column is missing or has another type.
    pub fn new(batch: &RecordBatch, shape: Option<&Arc<Shape>>, file: &Path) -> Result<View, SegmentError> {
        let parts = match shape {
            Some(shape) => Parts::of(batch, shape, file)?,
            None => None,
        };
        Ok(View {
            object: column(batch, at::OBJECT, file)?,
            key: column(batch, at::KEY, file)?,
            xact: column(batch, at::XACT, file)?,
            end: column(batch, at::END, file)?,
            action: column(batch, at::ACTION, file)?,
            id: column(batch, at::ID, file)?,
            span_id: column(batch, at::SPAN_ID, file)?,
            root_span_id: column(batch, at::ROOT_SPAN_ID, file)?,
            is_root: column(batch, at::IS_ROOT, file)?,
            created: column(batch, at::CREATED, file)?,
            doc: optional(batch, at::DOC, file)?,
            patch: optional(batch, at::PATCH, file)?,
            rules: optional(batch, at::RULES, file)?,
            audit: optional(batch, at::AUDIT, file)?,
            parts,
        })
    }

    /// Returns the fields by which the row at `index` is ordered and indexed.
    pub fn header(&self, index: usize, file: &Path) -> Result<RowHeader<'_>, SegmentError> {
        let bad = |what: &str| SegmentError::damaged(file, 0, format!("a row whose {what} is not known"));
        Ok(RowHeader {
            object: ObjectKey::from_bytes(self.object.value(index)).ok_or_else(|| bad("kind of object"))?,
            key: PaginationKey(self.key.value(index)),
            xact: Xact(self.xact.value(index)),
            end: self.end.is_valid(index).then(|| Xact(self.end.value(index))),
            action: Action::from_byte(self.action.value(index)).ok_or_else(|| bad("action"))?,
            id: self.id.value(index),
            is_root: self.is_root.value(index),
            created: self.created.value(index),
        })
    }

    /// Returns the size of the document, patch, rules and audit note of the row at `index`.
    pub fn raw_bytes(&self, index: usize) -> u64 {
        let columns = [&self.doc, &self.patch, &self.rules, &self.audit];
        let whole: u64 = columns.into_iter().flatten().map(|column| column.value_length(index) as u64).sum();
        let parts = self.parts.as_ref().map_or(0, |parts| parts.doc_bytes(index, self.said()));
        whole + parts as u64
    }

    /// Appends the document of the row at `index`, if this view has documents.
    pub fn put_doc(&self, index: usize, out: &mut Vec<u8>) {
        if self.parts.as_ref().is_some_and(|parts| parts.put(index, self.said(), out)) {
            return;
        }
        if let Some(doc) = &self.doc {
            out.extend_from_slice(doc.value(index));
        }
    }

    fn said(&self) -> RowIds<'_> {
        RowIds {
            id: &self.id,
            span_id: &self.span_id,
            root_span_id: &self.root_span_id,
            is_root: &self.is_root,
            created: &self.created,
        }
    }

    fn doc(&self, index: usize) -> Bytes {
        if self.parts.is_none() {
            return value(&self.doc, index).unwrap_or_default();
        }
        let mut doc = Vec::new();
        self.put_doc(index, &mut doc);
        doc.into()
    }

    pub fn owned(&self, index: usize, row: u32, file: &Path) -> Result<OwnedRow, SegmentError> {
        let header = self.header(index, file)?;
        Ok(OwnedRow {
            row,
            object: header.object,
            key: header.key,
            xact: header.xact,
            end: header.end,
            action: header.action,
            id: header.id.to_owned(),
            span_id: self.span_id.value(index).to_owned(),
            root_span_id: self.root_span_id.value(index).to_owned(),
            is_root: header.is_root,
            created: header.created,
            doc: self.doc(index),
            patch: value(&self.patch, index),
            rules: value(&self.rules, index),
            audit: value(&self.audit, index),
        })
    }
}

/// Returns a copy of a value, because sharing would keep the batch's whole buffer in memory for one row.
fn value(column: &Option<BinaryArray>, index: usize) -> Option<Bytes> {
    let column = column.as_ref()?;
    column.is_valid(index).then(|| Bytes::copy_from_slice(column.value(index)))
}

fn column<T: Array + Clone + 'static>(batch: &RecordBatch, at: usize, file: &Path) -> Result<T, SegmentError> {
    optional(batch, at, file)?
        .ok_or_else(|| SegmentError::damaged(file, 0, format!("the column {} is missing", SCHEMA.field(at).name())))
}

fn optional<T: Array + Clone + 'static>(
    batch: &RecordBatch,
    place: usize,
    file: &Path,
) -> Result<Option<T>, SegmentError> {
    let field = SCHEMA.field(place);
    let Some(array) = batch.column_by_name(field.name()) else {
        return Ok(None);
    };
    let wrong = || SegmentError::damaged(file, 0, format!("the column {} has another type", field.name()));
    let typed = array.as_any().downcast_ref::<T>().ok_or_else(wrong)?;
    let nullable = field.is_nullable() || place == at::DOC;
    if array.data_type() != field.data_type() || (!nullable && array.null_count() > 0) {
        return Err(wrong());
    }
    Ok(Some(typed.clone()))
}
