//! Input and output form of rows. Each row is one *version* of a row, or a comment.

use assay_storage_model::command::Action;
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use bytes::Bytes;

use crate::index::hash::Hasher;

/// Version that a seal pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRow<'a> {
    pub object: ObjectKey,
    pub key: PaginationKey,
    pub xact: Xact,
    /// Write that superseded it, if that was known when this segment was written.
    pub end: Option<Xact>,
    pub action: Action,
    pub id: &'a str,
    pub span_id: &'a str,
    pub root_span_id: &'a str,
    pub is_root: bool,
    /// Microseconds since the epoch, UTC.
    pub created: i64,
    /// Merged row; the body for a comment, and empty for a delete.
    pub doc: &'a [u8],
    /// Patch of a merge, as written.
    pub patch: Option<&'a [u8]>,
    pub rules: Option<&'a [u8]>,
    pub audit: Option<&'a [u8]>,
}

impl<'a> VersionRow<'a> {
    pub(crate) fn header(&self) -> RowHeader<'a> {
        RowHeader {
            object: self.object,
            key: self.key,
            xact: self.xact,
            end: self.end,
            action: self.action,
            id: self.id,
            is_root: self.is_root,
            created: self.created,
        }
    }

    /// Returns the size of the document, the patch, the rules and the audit note.
    pub fn raw_bytes(&self) -> u64 {
        let optional = [self.patch, self.rules, self.audit];
        (self.doc.len() + optional.into_iter().flatten().map(<[u8]>::len).sum::<usize>()) as u64
    }
}

/// Version as read. Columns that were not requested are empty or `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRow {
    /// Position in the segment.
    pub row: u32,
    pub object: ObjectKey,
    pub key: PaginationKey,
    pub xact: Xact,
    pub end: Option<Xact>,
    pub action: Action,
    pub id: String,
    pub span_id: String,
    pub root_span_id: String,
    pub is_root: bool,
    pub created: i64,
    pub doc: Bytes,
    pub patch: Option<Bytes>,
    pub rules: Option<Bytes>,
    pub audit: Option<Bytes>,
}

/// Columns that a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All columns except documents, patches, rules and audit notes.
    Keys,
    /// Keys and documents.
    Docs,
    /// Keys and audit notes.
    Audits,
    All,
}

/// Row of an older segment that this segment's seal superseded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// `seq` of the older segment.
    pub segment: u64,
    pub row: u32,
    pub end: Xact,
}

/// Id of an object, hashed once for lookups in many segments.
#[derive(Clone, Copy, Debug)]
pub struct SoughtId<'a> {
    pub object: ObjectKey,
    pub id: &'a str,
    pub(crate) hash: u64,
}

impl<'a> SoughtId<'a> {
    pub fn new(object: ObjectKey, id: &'a str) -> SoughtId<'a> {
        SoughtId { object, id, hash: Hasher::new(object).id(id) }
    }
}

/// Version of an id, found in the sidecar without reading the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdHit {
    pub row: u32,
    pub xact: Xact,
    pub key: PaginationKey,
    pub end: Option<Xact>,
    pub action: Action,
}

/// Fields of a row by which a merge decides whether to keep it; `end` has the folded marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHeader<'a> {
    pub object: ObjectKey,
    pub key: PaginationKey,
    pub xact: Xact,
    pub end: Option<Xact>,
    pub action: Action,
    pub id: &'a str,
    pub is_root: bool,
    pub created: i64,
}
