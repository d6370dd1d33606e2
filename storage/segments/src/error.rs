//! Errors of a segment. Each message names the action to take.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum SegmentError {
    /// Bytes on disk that differ from those written. The replica that holds them must be rebuilt from the others.
    #[error("{} is damaged at byte {offset}: {what}; rebuild this replica from the others or restore the file", file.display())]
    Damaged { file: PathBuf, offset: u64, what: String },
    #[error("{} has segment format {found}, this program reads up to {known}: upgrade it", file.display())]
    Newer { file: PathBuf, found: u16, known: u16 },
    /// Pushed rows that are not in order: object ascending, pagination key and transaction id descending.
    #[error("rows out of order: row {row} of segment {seq} does not follow its predecessor")]
    OutOfOrder { seq: u64, row: u32 },
    #[error("a segment is full: it holds at most {limit} {what}")]
    TooLarge { what: &'static str, limit: u64 },
    /// Requested rows that do not ascend or do not exist.
    #[error("rows to read must be ascending and below {rows}")]
    NoSuchRows { rows: u32 },
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    /// Columns that could not be encoded. Nothing was listed.
    #[error("segment {seq} could not be written: {what}")]
    Encode { seq: u64, what: String },
}

impl SegmentError {
    pub(crate) fn io(file: &Path) -> impl FnOnce(io::Error) -> SegmentError + '_ {
        move |source| SegmentError::Io { file: file.to_owned(), source }
    }

    pub(crate) fn damaged(file: &Path, offset: u64, what: impl Into<String>) -> SegmentError {
        SegmentError::Damaged { file: file.to_owned(), offset, what: what.into() }
    }

    /// Returns whether the data on disk is wrong, as opposed to an invalid request or a temporary read failure.
    ///
    /// The match names every variant, so that a new one must be classified, because a damaged replica may be discarded.
    pub fn is_damage(&self) -> bool {
        match self {
            SegmentError::Damaged { .. } => true,
            SegmentError::Newer { .. }
            | SegmentError::OutOfOrder { .. }
            | SegmentError::TooLarge { .. }
            | SegmentError::NoSuchRows { .. }
            | SegmentError::Io { .. }
            | SegmentError::Encode { .. } => false,
        }
    }
}
