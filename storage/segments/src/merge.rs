//! Many segments into one.
use std::path::Path;
use std::sync::Arc;

use assay_storage_disk::SharedDisk;
use assay_storage_model::Xact;
use assay_storage_model::segment::SegmentMeta;

use crate::error::SegmentError;
use crate::row::{Mark, RowHeader};
use crate::segment::Segment;
use crate::writer::WriterOptions;

/// One segment of a merge.
#[derive(Clone, Debug)]
pub struct MergeInput {
    pub segment: Arc<Segment>,
    /// What later segments superseded in this one: row and end, sorted by row.
    pub ends: Vec<(u32, Xact)>,
}

/// What a merge made.
#[derive(Clone, Debug)]
pub struct Merged {
    pub meta: SegmentMeta,
    /// For each input, for each of its rows: its new number, or [`DROPPED`].
    pub moved: Vec<Vec<u32>>,
}

/// In place of the new number of a row that was not kept.
pub const DROPPED: u32 = u32::MAX;

/// see below
#[expect(clippy::too_many_arguments, reason = "x")]
pub fn merge(
    inputs: &[MergeInput],
    keep: &dyn Fn(&RowHeader<'_>) -> bool,
    disk: SharedDisk,
    dir: &Path,
    seq: u64,
    options: WriterOptions,
    marks: &[Mark],
) -> Result<Merged, SegmentError> {
    let _ = (inputs, keep, disk, dir, seq, options, marks);
    todo!()
}
