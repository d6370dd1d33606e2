//! Columns of one row group by their meaning: the input of a query, independent of the segment's format.
//!
//! A path is read from its typed column if that column is complete, or else from its field's texts or from whole
//! documents. The choice affects only the time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array, RecordBatch, RecordBatchReader, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use assay_storage_model::merge::{Step, doc_field};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use parquet::file::statistics::Statistics;

use crate::blocks::RowsReader;
use crate::columnar::{Form, Kind, Kinds, SAID, Shape, Shredder, Values, json_of};
use crate::columns::{View, at};
use crate::error::SegmentError;
use crate::row::Columns;
use crate::segment::Segment;

/// Column that a query reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    Key,
    Xact,
    /// End of the version as written, without later marks; null if there was none.
    End,
    Action,
    Id,
    SpanId,
    RootSpanId,
    IsRoot,
    /// Microseconds since the epoch, UTC.
    Created,
    /// Whole document as a JSON text.
    Doc,
    /// JSON text of one field of the document; null for null.
    Field(String),
    /// Value at a path of the document; its first step is a field.
    Path(Vec<Step>, Form),
}

impl Want {
    /// Returns whether the values may be long, so that they are read for few rows at a time.
    pub fn is_wide(&self) -> bool {
        matches!(self, Want::Doc | Want::Field(_))
    }

    /// Returns whether each value is small, so that a whole chunk is cheap to read.
    pub fn is_small(&self) -> bool {
        matches!(self, Want::Key | Want::Xact | Want::End | Want::Action | Want::Created | Want::IsRoot)
    }

    fn fixed(&self) -> Option<usize> {
        match self {
            Want::Key => Some(at::KEY),
            Want::Xact => Some(at::XACT),
            Want::End => Some(at::END),
            Want::Action => Some(at::ACTION),
            Want::Id => Some(at::ID),
            Want::SpanId => Some(at::SPAN_ID),
            Want::RootSpanId => Some(at::ROOT_SPAN_ID),
            Want::IsRoot => Some(at::IS_ROOT),
            Want::Created => Some(at::CREATED),
            Want::Doc | Want::Field(_) | Want::Path(..) => None,
        }
    }
}

/// Bounds of all rows of a group, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupBounds {
    pub key: (u64, u64),
    pub xact: (u64, u64),
    pub created: (i64, i64),
}

/// Source of the values of a path.
enum Source {
    /// Typed column with this number.
    Typed(usize),
    /// Texts of this field.
    Field(usize),
    /// Whole documents, which alone may have the field.
    Whole,
    /// No source, because no document has the field and none is whole.
    Nowhere,
    /// Assembled documents, because the value is in another column or the path names no field.
    Documents,
}

impl Segment {
    pub fn groups(&self) -> usize {
        self.group_starts.len() - 1
    }

    /// Returns the rows of a group.
    pub fn group_rows(&self, group: usize) -> Range<u32> {
        self.group_starts[group]..self.group_starts[group + 1]
    }

    /// Returns the mean size of a row of a group in bytes, before compression.
    pub fn row_bytes(&self, group: usize) -> usize {
        let group = self.footer.metadata().row_group(group);
        let (bytes, rows) = (group.total_byte_size().max(0), group.num_rows().max(1));
        usize::try_from(bytes / rows).unwrap_or(usize::MAX)
    }

    /// Returns the bounds of a group, or `None` if the file has none.
    pub fn group_bounds(&self, group: usize) -> Option<GroupBounds> {
        let group = self.footer.metadata().row_group(group);
        let ends = |column: usize| match group.column(column).statistics()? {
            Statistics::Int64(numbers) => Some((*numbers.min_opt()?, *numbers.max_opt()?)),
            _ => None,
        };
        // Parquet stores unsigned numbers as signed ones with the same bits, but orders them as unsigned.
        let unsigned = |(min, max): (i64, i64)| (min as u64, max as u64);
        Some(GroupBounds {
            key: unsigned(ends(at::KEY)?),
            xact: unsigned(ends(at::XACT)?),
            created: ends(at::CREATED)?,
        })
    }

    /// Returns the kinds of values at a path of keys if they are known without reading rows.
    pub fn known_kinds(&self, path: &[Step]) -> Option<Kinds> {
        let shape = self.shape.as_ref()?;
        match self.source(shape, path) {
            Source::Typed(typed) => Some(match shape.typed[typed].kind {
                Kind::Bool => Kinds::BOOL,
                Kind::Int if self.ints_are_safe(shape, typed) => Kinds::INT,
                Kind::Int => Kinds::INT.and(Kinds::WIDE),
                Kind::Float => Kinds::FLOAT,
                Kind::Text => Kinds::TEXT,
            }),
            Source::Nowhere => Some(Kinds::NONE),
            Source::Field(_) | Source::Whole | Source::Documents => None,
        }
    }

    fn ints_are_safe(&self, shape: &Shape, typed: usize) -> bool {
        self.footer.metadata().row_groups().iter().all(|group| match group.column(shape.typed_at(typed)).statistics() {
            Some(Statistics::Int64(ints)) => {
                [ints.min_opt(), ints.max_opt()].into_iter().flatten().all(|int| int.unsigned_abs() <= 1 << 53)
            }
            _ => false,
        })
    }

    fn source(&self, shape: &Shape, path: &[Step]) -> Source {
        let same = |keys: &[String]| {
            keys.len() == path.len()
                && keys.iter().zip(path).all(|(key, step)| matches!(step, Step::Key(wanted) if wanted == key))
        };
        if let Some(typed) = shape.typed.iter().position(|typed| same(&typed.path))
            && shape.typed[typed].odd.is_empty()
            && !shape.typed[typed].useless
        {
            return Source::Typed(typed);
        }
        match path.first() {
            Some(Step::Key(name)) => self.field_source(shape, name),
            _ => Source::Documents,
        }
    }

    fn field_source(&self, shape: &Shape, name: &str) -> Source {
        match shape.fields.iter().position(|field| field == name) {
            Some(field) if shape.has(field) => Source::Field(field),
            None if SAID.contains(&name) => Source::Documents,
            _ if shape.whole == 0 => Source::Nowhere,
            _ => Source::Whole,
        }
    }

    /// Reads columns for the rows of a group: all in `rows` (numbers within the segment), or those selected by `keep`.
    pub fn read_columns(
        &self,
        group: usize,
        rows: Range<u32>,
        keep: Option<&BooleanBuffer>,
        wants: &[Want],
    ) -> Result<Vec<ArrayRef>, SegmentError> {
        let of_group = self.group_rows(group);
        if rows.start < of_group.start || rows.end > of_group.end || rows.start > rows.end {
            return Err(SegmentError::NoSuchRows { rows: self.meta().rows });
        }
        let batch = self.file_columns(group, rows, keep, &self.places(wants))?;
        wants.iter().map(|want| self.column_of(&batch, want)).collect()
    }

    /// Returns the kinds of values that rows of a group have at a path.
    pub fn path_kinds(&self, group: usize, path: &[Step]) -> Result<Kinds, SegmentError> {
        if let Some(known) = self.known_kinds(path) {
            return Ok(known);
        }
        let places = self.places(&[Want::Path(path.to_vec(), Form::Json)]);
        let batch = self.file_columns(group, self.group_rows(group), None, &places)?;
        Ok(self.shredded(&batch, path, Form::Json)?.1)
    }

    fn file_columns(
        &self,
        group: usize,
        rows: Range<u32>,
        keep: Option<&BooleanBuffer>,
        places: &[usize],
    ) -> Result<RecordBatch, SegmentError> {
        let count = keep.map_or(rows.len(), BooleanBuffer::count_set_bits);
        let chunks = RowsReader::new(&self.rows_file);
        let mask = ProjectionMask::roots(self.footer.parquet_schema(), places.iter().copied());
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks.clone(), self.footer.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_row_selection(selection(rows.start - self.group_rows(group).start, rows.len(), keep))
            .with_batch_size(count.max(1))
            .build()
            .map_err(|error| chunks.explain(error))?;
        let batch = match reader.next().transpose().map_err(|error| chunks.explain(error))? {
            Some(batch) => batch,
            None => RecordBatch::new_empty(reader.schema()),
        };
        if batch.num_rows() != count {
            let path = self.rows_file.path();
            return Err(SegmentError::damaged(path, 0, "its pages have other rows than its footer lists"));
        }
        Ok(batch)
    }

    /// Returns the file columns from which the wanted ones are computed.
    fn places(&self, wants: &[Want]) -> Vec<usize> {
        let shape = self.shape.as_deref();
        let documents = || self.projection(Columns::Docs);
        let mut places: Vec<usize> = wants
            .iter()
            .flat_map(|want| match (want, shape) {
                (Want::Doc | Want::Field(_) | Want::Path(..), None) => vec![at::DOC],
                (Want::Doc, Some(_)) => documents(),
                (Want::Field(name), Some(shape)) => self.places_of(shape, &self.field_source(shape, name)),
                (Want::Path(path, _), Some(shape)) => self.places_of(shape, &self.source(shape, path)),
                (fixed, _) => fixed.fixed().into_iter().collect(),
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    fn places_of(&self, shape: &Shape, source: &Source) -> Vec<usize> {
        match source {
            Source::Typed(typed) => vec![shape.typed_at(*typed)],
            Source::Field(field) if shape.whole == 0 => vec![shape.field_at(*field)],
            Source::Field(field) => vec![at::DOC, shape.field_at(*field)],
            Source::Whole => vec![at::DOC],
            // A small column provides the number of rows.
            Source::Nowhere => vec![at::ACTION],
            Source::Documents => self.projection(Columns::Docs),
        }
    }

    fn column_of(&self, batch: &RecordBatch, want: &Want) -> Result<ArrayRef, SegmentError> {
        if let Some(place) = want.fixed() {
            return self.file_column(batch, place).cloned();
        }
        match (want, self.shape.as_deref()) {
            (Want::Doc, _) => self.documents(batch),
            (Want::Field(name), shape) => {
                let source = shape.map_or(Source::Whole, |shape| self.field_source(shape, name));
                match (source, shape) {
                    (Source::Field(field), Some(shape)) if shape.whole == 0 => {
                        Ok(texts_of(self.binary(batch, shape.field_at(field))?))
                    }
                    (Source::Field(field), Some(shape)) => {
                        Ok(texts(self.field_texts(batch, shape, field, name)?.into_iter()))
                    }
                    (Source::Nowhere, _) => Ok(texts((0..batch.num_rows()).map(|_| None))),
                    (Source::Whole, _) => {
                        let docs = self.binary(batch, at::DOC)?;
                        Ok(texts(docs.iter().map(|doc| doc_field(doc?, name).ok().flatten())))
                    }
                    _ => {
                        let docs = self.documents(batch)?;
                        Ok(texts(docs.as_string::<i32>().iter().map(|doc| doc_field(doc?.as_bytes(), name).ok()?)))
                    }
                }
            }
            (Want::Path(path, form), Some(shape)) if let Source::Typed(typed) = self.source(shape, path) => {
                let column = self.file_column(batch, shape.typed_at(typed))?;
                Ok(in_form(column, shape.typed[typed].kind, *form))
            }
            (Want::Path(path, form), _) => Ok(self.shredded(batch, path, *form)?.0),
            (other, _) => unreachable!("{other:?} has a column of its own"),
        }
    }

    /// Returns the values at a path without a typed column, and their kinds.
    fn shredded(&self, batch: &RecordBatch, path: &[Step], form: Form) -> Result<(ArrayRef, Kinds), SegmentError> {
        let field = match (self.shape.as_deref(), path) {
            (Some(shape), [Step::Key(name), below @ ..]) => Some((shape, self.source(shape, path), name, below)),
            _ => None,
        };
        let mut shredder;
        match field {
            Some((shape, Source::Field(field), name, below)) => {
                shredder = Shredder::new([(below, form)]);
                for text in self.field_texts(batch, shape, field, name)? {
                    shredder.push(text.unwrap_or(b"null"));
                }
            }
            Some((_, Source::Nowhere, ..)) => {
                shredder = Shredder::new([(path, form)]);
                (0..batch.num_rows()).for_each(|_| shredder.push(b"{}"));
            }
            Some((_, Source::Whole, ..)) => {
                shredder = Shredder::new([(path, form)]);
                self.binary(batch, at::DOC)?.iter().for_each(|doc| shredder.push(doc.unwrap_or(b"{}")));
            }
            _ => {
                shredder = Shredder::new([(path, form)]);
                let docs = self.documents(batch)?;
                docs.as_string::<i32>().iter().for_each(|doc| shredder.push(doc.unwrap_or_default().as_bytes()));
            }
        }
        Ok(shredder.finish().swap_remove(0))
    }

    /// Returns the texts of one field, taken from whole documents where they exist.
    fn field_texts<'b>(
        &self,
        batch: &'b RecordBatch,
        shape: &Shape,
        field: usize,
        name: &str,
    ) -> Result<Vec<Option<&'b [u8]>>, SegmentError> {
        let column = self.binary(batch, shape.field_at(field))?;
        let whole = if shape.whole > 0 { Some(self.binary(batch, at::DOC)?) } else { None };
        let text = |row: usize| match whole {
            Some(docs) if docs.is_valid(row) => doc_field(docs.value(row), name).ok().flatten(),
            _ => column.is_valid(row).then(|| column.value(row)),
        };
        Ok((0..column.len()).map(text).collect())
    }

    fn documents(&self, batch: &RecordBatch) -> Result<ArrayRef, SegmentError> {
        if self.shape.is_none() {
            let docs = self.binary(batch, at::DOC)?;
            return Ok(texts((0..docs.len()).map(|row| Some(docs.value(row)))));
        }
        let view = View::new(batch, self.shape.as_ref(), self.rows_file.path())?;
        let mut docs = StringBuilder::new();
        let mut doc = Vec::new();
        for row in 0..batch.num_rows() {
            doc.clear();
            view.put_doc(row, &mut doc);
            docs.append_value(String::from_utf8_lossy(&doc));
        }
        Ok(Arc::new(docs.finish()))
    }

    fn file_column<'b>(&self, batch: &'b RecordBatch, place: usize) -> Result<&'b ArrayRef, SegmentError> {
        let name = self.footer.parquet_schema().column(place).name().to_owned();
        batch
            .column_by_name(&name)
            .ok_or_else(|| SegmentError::damaged(self.rows_file.path(), 0, format!("the column {name} is missing")))
    }

    fn binary<'b>(&self, batch: &'b RecordBatch, place: usize) -> Result<&'b BinaryArray, SegmentError> {
        let column = self.file_column(batch, place)?;
        column
            .as_binary_opt()
            .ok_or_else(|| SegmentError::damaged(self.rows_file.path(), 0, "a column of another type"))
    }
}

/// Returns a column of JSON texts that shares its memory, with null for the text `null`.
fn texts_of(column: &BinaryArray) -> ArrayRef {
    let present = (0..column.len()).map(|row| column.is_valid(row) && column.value(row) != b"null");
    let nulls = NullBuffer::from(BooleanBuffer::from_iter(present));
    match StringArray::try_new(column.offsets().clone(), column.values().clone(), Some(nulls)) {
        Ok(texts) => Arc::new(texts),
        Err(_) => texts(column.iter()),
    }
}

/// Returns JSON texts, with null for the text `null`. Invalid UTF-8, which is never written, is converted lossily.
fn texts<'t>(values: impl Iterator<Item = Option<&'t [u8]>>) -> ArrayRef {
    let mut texts = StringBuilder::new();
    for value in values {
        match value {
            None | Some(b"null") => texts.append_null(),
            Some(text) => texts.append_value(String::from_utf8_lossy(text)),
        }
    }
    Arc::new(texts.finish())
}

/// Converts a typed column to the requested form, which must be able to hold its kind.
fn in_form(column: &ArrayRef, kind: Kind, form: Form) -> ArrayRef {
    match form {
        Form::Typed(wanted) if wanted == kind => Arc::clone(column),
        Form::Typed(Kind::Float) if kind == Kind::Int => {
            let ints = column.as_primitive::<Int64Type>();
            Arc::new(ints.iter().map(|int| int.map(|int| int as f64)).collect::<Float64Array>())
        }
        Form::Typed(wanted) => {
            let mut nothing = Values::new(Form::Typed(wanted));
            (0..column.len()).for_each(|_| nothing.push(None));
            nothing.finish()
        }
        Form::Json => json_of(column, kind),
    }
}

/// Returns the selection of a group's rows from `start`, which counts within the group.
fn selection(start: u32, count: usize, keep: Option<&BooleanBuffer>) -> RowSelection {
    let mut selectors = vec![RowSelector::skip(start as usize)];
    match keep {
        None => selectors.push(RowSelector::select(count)),
        Some(keep) => {
            let mut next = 0;
            for (from, to) in keep.set_slices() {
                selectors.push(RowSelector::skip(from - next));
                selectors.push(RowSelector::select(to - from));
                next = to;
            }
        }
    }
    selectors.retain(|selector| selector.row_count > 0);
    RowSelection::from(selectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_share_their_memory_and_null_texts_are_null() {
        let column = BinaryArray::from(vec![Some(b"{}".as_slice()), None, Some(b"null"), Some(b"\"a\"")]);
        let shared = texts_of(&column);
        assert_eq!(shared.as_string::<i32>(), &StringArray::from(vec![Some("{}"), None, None, Some("\"a\"")]));
        assert_eq!(shared.as_string::<i32>().value_data().as_ptr(), column.value_data().as_ptr());
    }

    #[test]
    fn texts_that_are_not_utf8_are_readable() {
        let column = BinaryArray::from(vec![Some(b"\"a\"".as_slice()), Some(b"\"\xff\""), Some(b"null")]);
        let expected = StringArray::from(vec![Some("\"a\""), Some("\"\u{fffd}\""), None]);
        assert_eq!(texts_of(&column).as_string::<i32>(), &expected);
    }
}
