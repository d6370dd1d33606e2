//! Conversion of documents into columns, and back to the same bytes.
//!
//! A document that is a plain object of known fields is stored as the texts of its fields and the number of its layout.
//! The layout lists its fields in order. Values of other columns of the row are not stored again. Any other document is
//! stored whole, in the column that other segments use for all documents. Reasons are an unknown field, white space, an
//! escaped key, or a value that is not an object.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt16Builder};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, StringArray, TimestampMicrosecondArray, UInt16Array};
use assay_storage_model::event::format_micros;
use assay_storage_model::merge::{DocField, Picker, Step, doc_fields};

use super::scalar::{Scalar, exact_float};
use super::shape::{FIELDS, Kind, LAYOUTS_MAX, ODD_ROWS_MAX, SAID, Shape, Typed};
use crate::words::{FIELDS as INDEXED_FIELDS, WordsBuilder};

/// Layout number of documents that are stored whole. Layouts count from 1.
const WHOLE: u16 = 0;

/// Columns of rows that hold fields of their documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowIds<'a> {
    pub id: &'a StringArray,
    pub span_id: &'a StringArray,
    pub root_span_id: &'a StringArray,
    pub is_root: &'a BooleanArray,
    pub created: &'a TimestampMicrosecondArray,
}

impl RowIds<'_> {
    /// Writes the JSON text of a field of [`SAID`].
    fn put(&self, slot: usize, row: usize, out: &mut Vec<u8>) {
        match slot {
            0 => put_text(self.id.value(row), out),
            1 => put_text(&format_micros(self.created.value(row)), out),
            2 => put_text(self.span_id.value(row), out),
            3 => put_text(self.root_span_id.value(row), out),
            _ => out.extend_from_slice(if self.is_root.value(row) { b"true" } else { b"false" }),
        }
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a text goes into memory");
}

/// Converter that buffers documents until their rows arrive, and then makes the columns of both.
#[derive(Debug)]
pub(crate) struct Splitter {
    shape: Shape,
    numbers: HashMap<Vec<u8>, u16>,
    /// Concatenated documents whose rows have not arrived yet.
    docs: Vec<u8>,
    doc_ends: Vec<usize>,
    columns: ColumnBuilders,
    pickers: Vec<FieldPicker>,
    rows: u32,
    scratch: Vec<u8>,
    /// Words of the rows since the last group ended.
    pub words: WordsBuilder,
}

#[derive(Debug)]
struct ColumnBuilders {
    whole: BinaryBuilder,
    layout: UInt16Builder,
    fields: Vec<BinaryBuilder>,
    typed: Vec<TypedBuilder>,
}

/// Typed paths below one field.
#[derive(Debug)]
struct FieldPicker {
    picker: Picker,
    /// Index in the shape of each typed column.
    typed: Vec<usize>,
}

#[derive(Debug)]
pub(super) enum TypedBuilder {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
}

impl Splitter {
    pub fn new(typed: Vec<Typed>) -> Splitter {
        let shape = Shape::new(typed);
        let columns = ColumnBuilders {
            whole: BinaryBuilder::new(),
            layout: UInt16Builder::new(),
            fields: shape.fields.iter().map(|_| BinaryBuilder::new()).collect(),
            typed: shape.typed.iter().map(|typed| TypedBuilder::new(typed.kind)).collect(),
        };
        let pickers = FIELDS.iter().map(|field| FieldPicker::new(field, &shape.typed)).collect();
        Splitter {
            shape,
            numbers: HashMap::new(),
            docs: Vec::new(),
            doc_ends: Vec::new(),
            columns,
            pickers,
            rows: 0,
            scratch: Vec::new(),
            words: WordsBuilder::default(),
        }
    }

    /// Returns the shape so far, with the layouts and odd rows of all rows up to now.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Adds the document of the next row.
    pub fn push(&mut self, doc: &[u8]) {
        self.docs.extend_from_slice(doc);
        self.doc_ends.push(self.docs.len());
    }

    /// Returns the columns of the buffered documents: whole documents, then the columns that the shape adds.
    pub fn take(&mut self, said: RowIds<'_>) -> Vec<ArrayRef> {
        let docs = std::mem::take(&mut self.docs);
        let ends = std::mem::take(&mut self.doc_ends);
        debug_assert_eq!(ends.len(), said.id.len(), "each row has a document");
        let mut start = 0;
        for (row, end) in ends.iter().enumerate() {
            self.split(&docs[start..*end], said, row);
            start = *end;
        }
        let ColumnBuilders { whole, layout, fields, typed } = &mut self.columns;
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(whole.finish()), Arc::new(layout.finish())];
        arrays.extend(fields.iter_mut().map(|field| Arc::new(field.finish()) as ArrayRef));
        arrays.extend(typed.iter_mut().map(TypedBuilder::finish));
        // The buffers are reused.
        (self.docs, self.doc_ends) = (docs, ends);
        self.docs.clear();
        self.doc_ends.clear();
        arrays
    }

    fn split(&mut self, doc: &[u8], said: RowIds<'_>, row: usize) {
        let (members, layout) = match doc_fields(doc) {
            Ok(members) => {
                let layout = self.layout_of(doc, &members, said, row);
                (members, layout)
            }
            Err(_) => (Vec::new(), WHOLE),
        };
        self.columns.layout.append_value(layout);
        self.shape.whole += u32::from(layout == WHOLE);
        self.columns.whole.append_option((layout == WHOLE).then_some(doc));
        let mut texts = [None; FIELDS.len()];
        for (name, value) in &members {
            if let Some(field) = FIELDS.iter().position(|field| field == name) {
                texts[field] = Some(*value);
            }
        }
        let indexed = |field: &&str| INDEXED_FIELDS.contains(field);
        self.words.push(FIELDS.iter().zip(texts).filter(|(field, _)| indexed(field)).filter_map(|(_, text)| text));
        for (field, text) in texts.into_iter().enumerate() {
            self.columns.fields[field].append_option(text.filter(|_| layout != WHOLE));
            self.pick(field, text);
        }
        self.rows += 1;
    }

    /// Returns the number of the layout from which exactly this document can be assembled.
    fn layout_of(&mut self, doc: &[u8], members: &[DocField<'_>], said: RowIds<'_>, row: usize) -> u16 {
        let mut slots = Vec::with_capacity(members.len());
        let mut length = 2 + members.len().saturating_sub(1);
        for (name, value) in members {
            let slot = match SAID.iter().position(|said| said == name) {
                Some(slot) => {
                    self.scratch.clear();
                    said.put(slot, row, &mut self.scratch);
                    (self.scratch == *value).then_some(slot)
                }
                None => FIELDS.iter().position(|field| field == name).map(|field| SAID.len() + field),
            };
            let Some(slot) = slot.filter(|slot| !slots.contains(&(*slot as u8))) else { return WHOLE };
            slots.push(slot as u8);
            length += name.len() + 3 + value.len();
        }
        // Any other content makes the document longer.
        if length != doc.len() {
            return WHOLE;
        }
        if let Some(number) = self.numbers.get(&slots) {
            return *number;
        }
        if self.shape.layouts.len() == LAYOUTS_MAX {
            return WHOLE;
        }
        self.shape.layouts.push(slots.clone());
        let number = self.shape.layouts.len() as u16;
        let has = |field: &u8| slots.contains(&(SAID.len() as u8 + field));
        self.shape.absent.retain(|field| !has(field));
        self.numbers.insert(slots, number);
        number
    }

    /// Appends the typed values below one field.
    fn pick(&mut self, field: usize, text: Option<&[u8]>) {
        let FieldPicker { picker, typed } = &self.pickers[field];
        if typed.is_empty() {
            return;
        }
        let mut found = vec![None; typed.len()];
        if let Some(text) = text
            && picker.pick(text, &mut found).is_err()
        {
            found.fill(None);
        }
        for (which, text) in typed.iter().zip(found) {
            let scalar = text.map_or(Scalar::Null, Scalar::of);
            if !self.columns.typed[*which].append(scalar) {
                let typed = &mut self.shape.typed[*which];
                if typed.odd.len() == ODD_ROWS_MAX {
                    (typed.useless, typed.odd) = (true, Vec::new());
                } else if !typed.useless {
                    typed.odd.push(self.rows);
                }
            }
        }
    }
}

impl FieldPicker {
    fn new(field: &str, all: &[Typed]) -> FieldPicker {
        let below = all.iter().enumerate().filter(|(_, typed)| typed.path[0] == field);
        let (typed, paths): (Vec<usize>, Vec<Vec<Step>>) = below
            .map(|(which, typed)| (which, typed.path[1..].iter().map(|key| Step::Key(key.clone())).collect()))
            .unzip();
        FieldPicker { picker: Picker::new(paths.iter().map(Vec::as_slice)), typed }
    }
}

impl TypedBuilder {
    pub fn new(kind: Kind) -> TypedBuilder {
        match kind {
            Kind::Bool => TypedBuilder::Bool(BooleanBuilder::new()),
            Kind::Int => TypedBuilder::Int(Int64Builder::new()),
            Kind::Float => TypedBuilder::Float(Float64Builder::new()),
            Kind::Text => TypedBuilder::Text(StringBuilder::new()),
        }
    }

    /// Appends a value. If the value is of another kind, appends null and returns false.
    pub fn append(&mut self, scalar: Scalar<'_>) -> bool {
        let null = matches!(scalar, Scalar::Null);
        match (self, scalar) {
            (TypedBuilder::Bool(builder), Scalar::Bool(truth)) => builder.append_value(truth),
            (TypedBuilder::Int(builder), Scalar::Int(int)) => builder.append_value(int),
            (TypedBuilder::Float(builder), Scalar::Float(float)) => builder.append_value(float),
            (TypedBuilder::Float(builder), Scalar::Int(int)) if let Some(float) = exact_float(int) => {
                builder.append_value(float);
            }
            (TypedBuilder::Text(builder), Scalar::Text(text)) => builder.append_value(text),
            (builder, _) => {
                builder.append_null();
                return null;
            }
        }
        true
    }

    fn append_null(&mut self) {
        match self {
            TypedBuilder::Bool(builder) => builder.append_null(),
            TypedBuilder::Int(builder) => builder.append_null(),
            TypedBuilder::Float(builder) => builder.append_null(),
            TypedBuilder::Text(builder) => builder.append_null(),
        }
    }

    pub fn finish(&mut self) -> ArrayRef {
        match self {
            TypedBuilder::Bool(builder) => Arc::new(builder.finish()),
            TypedBuilder::Int(builder) => Arc::new(builder.finish()),
            TypedBuilder::Float(builder) => Arc::new(builder.finish()),
            TypedBuilder::Text(builder) => Arc::new(builder.finish()),
        }
    }
}

/// Columns of one batch from which documents are assembled.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub shape: Arc<Shape>,
    pub layout: UInt16Array,
    /// Texts in the order of the shape's fields, or `None` if no document has the field.
    pub fields: Vec<Option<BinaryArray>>,
}

impl Parts {
    /// Returns whether every layout number exists.
    pub fn sound(&self) -> bool {
        self.layout.values().iter().all(|number| usize::from(*number) <= self.shape.layouts.len())
    }

    /// Returns the size of the document of a row, or 0 if it is stored whole.
    pub fn doc_bytes(&self, row: usize, said: RowIds<'_>) -> usize {
        let mut doc = Vec::new();
        self.put(row, said, &mut doc);
        doc.len()
    }

    /// Appends the document of a row, or returns false if it is stored whole.
    pub fn put(&self, row: usize, said: RowIds<'_>, out: &mut Vec<u8>) -> bool {
        let number = self.layout.value(row);
        if number == WHOLE {
            return false;
        }
        let layout = &self.shape.layouts[usize::from(number) - 1];
        out.push(b'{');
        for (nth, slot) in layout.iter().enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(self.shape.name(*slot).as_bytes());
            out.extend_from_slice(b"\":");
            match usize::from(*slot).checked_sub(SAID.len()) {
                Some(field) => {
                    out.extend_from_slice(self.fields[field].as_ref().map_or(b"null", |text| text.value(row)))
                }
                None => said.put(usize::from(*slot), row, out),
            }
        }
        out.push(b'}');
        true
    }
}
