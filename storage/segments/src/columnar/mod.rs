//! Columnar segments: formats 2 and 3, which differ in their sidecars.
//!
//! The text of each document field is a compressed column, and frequent paths have typed columns in addition.
//! Compaction makes these segments from sealed ones.
//!
//! | column | type | pages |
//! |---|---|---|
//! | those of every segment | as in `columns`; `doc` is null where a document is kept as parts | as there, compressed harder |
//! | layout | u16: which parts a document is made of | dictionary |
//! | field `<name>` | bytes (JSON text), nullable | plain, pages of 512 KiB, zstd |
//! | path `[<keys>]` | bool, i64, f64 or text, nullable | dictionary while it is small, then floats byte by byte and integers as differences; statistics by row group |

mod choose;
mod scalar;
mod shape;
mod shred;
mod split;

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, RecordBatch, UInt16Array};

pub(crate) use choose::Sample;
pub use shape::{Kind, Typed};
pub(crate) use shape::{SAID, SHAPE_KEY, Shape};
pub(crate) use shred::Values;
pub(crate) use shred::json_of;
pub use shred::{Form, Kinds, Shredder};
pub(crate) use split::{Parts, RowIds, Splitter};

use crate::error::SegmentError;

impl Parts {
    /// Returns the parts in a batch, if it has them.
    pub fn of(batch: &RecordBatch, shape: &Arc<Shape>, file: &Path) -> Result<Option<Parts>, SegmentError> {
        let names = shape.columns();
        let Some(layout) = batch.column_by_name(names[0].name()) else { return Ok(None) };
        let wrong =
            |name: &str| SegmentError::damaged(file, 0, format!("the column {name} is missing or has another type"));
        let layout: Option<&UInt16Array> = layout.as_any().downcast_ref();
        let layout = layout.filter(|layout| layout.null_count() == 0).ok_or_else(|| wrong("layout"))?.clone();
        let fields = names[1..=shape.fields.len()].iter().enumerate().map(|(place, field)| {
            if !shape.has(place) {
                return Ok(None);
            }
            let column: Option<&BinaryArray> =
                batch.column_by_name(field.name()).and_then(|column| column.as_any().downcast_ref());
            column.cloned().map(Some).ok_or_else(|| wrong(field.name()))
        });
        let parts = Parts { shape: Arc::clone(shape), layout, fields: fields.collect::<Result<_, _>>()? };
        if !parts.sound() {
            return Err(SegmentError::damaged(file, 0, "a document has a missing layout"));
        }
        Ok(Some(parts))
    }
}
