//! Immutable, checksummed segments of row versions. This is the only crate that names parquet.
//!
//! A segment is two to four files that are written once, whole, and never changed:
//!
//! ```text
//! 00000007.parquet   the versions, sorted by (object ascending, pagination key descending, xact descending); any tool reads it
//! 00000007.ids       the sidecar: id -> versions, trace -> rows, key of each row, object -> rows, filter, checksums of both files
//! 00000007.marks     optional: rows of older segments that this segment's seal superseded
//! 00000007.words     only in columnar segments: word -> blocks of rows, for searches
//! ```
//!
//! The shard's manifest lists a segment by its `SegmentMeta`; the directory does not. `finish` writes files under a
//! temporary name, syncs and renames them, and syncs the directory before it returns a description. A crash at any
//! point leaves at most files that no manifest names; [`sweep`] removes them.
//!
//! Seals write documents whole (format 1). A merge may write them as columns (formats 2 and 3, `columnar`), which
//! queries read and which take half the space.
//!
//! Every block of every file has a CRC32C that is checked before the block is decoded. The chain starts in the
//! manifest, which holds the length of each file and the checksum of the sidecar's trailer. The trailer holds the
//! checksums of the tables. Damage is an error that names the file and the place. It never causes a wrong row or a
//! panic.
//!
//! This crate does not handle shards, consensus and the visibility of versions.

mod blocks;
mod chunk;
mod columnar;
mod columns;
mod documents;
mod error;
mod files;
mod groups;
mod index;
mod marks;
pub mod merge;
mod page_header;
mod pages;
mod read;
mod row;
mod segment;
mod sidecar;
mod sources;
mod verify;
mod words;
mod writer;

pub use chunk::{GroupBounds, Want};
pub use columnar::{Form, Kind, Kinds, Shredder, Typed};
pub use columns::schema;
pub use error::SegmentError;
pub use files::{file_name, remove, sweep};
pub use merge::{DROPPED, MergeInput, Merged};
pub use read::{Batches, Scan};
pub use row::{Columns, IdHit, Mark, OwnedRow, RowHeader, SoughtId, VersionRow};
pub use segment::Segment;
pub use verify::verify;
pub use words::{BLOCK_ROWS, FIELDS as INDEXED_FIELDS, WORD_BYTES_MAX};
pub use writer::{Codec, SegmentWriter, WriterOptions};
