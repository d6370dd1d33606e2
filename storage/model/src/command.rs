//! Commands of a shard, with their frozen encodings: `version, tag, body`. Times and ids are in the command, so that
//! applying it uses no clock. Numbers and golden bytes never change; a new meaning gets a new tag or a new version. The
//! body is bincode's standard form (lengths and integers as varints); the details are in `command/codec.rs`.
//!
//! | version | date | change |
//! |---|---|---|
//! | 1 | 2026-11-21 | first |
//! | 2 | 2026-11-30 | conditional writes; all other commands keep version 1 |

mod codec;

use bincode::{BorrowDecode, Encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ids::ObjectKey;
use crate::xact::Xact;

pub const COMMAND_VERSION: u8 = 1;
/// First byte of conditional writes, in place of the version. An older program stops at one instead of applying it without its conditions.
const CONDITIONAL_FRAME: u8 = 2;
/// Rows of one write; below 2^16, since a pagination key keeps the row's place in 16 bits.
pub const ROWS_PER_WRITE_MAX: usize = 10_000;
/// One command's bytes.
pub const COMMAND_BYTES_MAX: usize = 64 << 20;

const TAG_WRITE: u8 = 1;
const TAG_ADVANCE: u8 = 2;
const TAG_RAISE_FLOOR: u8 = 3;
const TAG_DROP_OBJECT: u8 = 4;
const TAG_CONDITIONAL_WRITE: u8 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// One client request to one object: visible whole or not at all.
    Write(Write<'a>),
    /// Write that is applied only if the rows it changes have the versions that its author read.
    ConditionalWrite(ConditionalWrite<'a>),
    /// No later write of this shard gets an id at or below this one, so reads at it are final.
    Advance { to: Xact },
    /// History of this object below the floor may go; reads below it are refused.
    RaiseFloor { object: ObjectKey, floor: Xact },
    /// The object is gone: its rows are no longer read, and its later writes are refused.
    DropObject { object: ObjectKey },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    pub object: ObjectKey,
    /// The id the object's actor gave; the shard applies `max(last + 1, assigned)`.
    pub assigned: Xact,
    pub request: Option<RequestId>,
    pub rows: Vec<RowOp<'a>>,
}

/// Write with conditions on the versions of some of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalWrite<'a> {
    pub write: Write<'a>,
    pub expected: Vec<ExpectedRow>,
}

/// Condition on a row before the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedRow {
    /// Index among the rows of the write.
    pub row: u32,
    /// Version of the live row, or [`Xact::ZERO`] if there is none.
    pub version: Xact,
}

impl<'a> Command<'a> {
    /// Returns the write of a command that writes rows, with its conditions.
    pub fn into_write(self) -> Option<(Write<'a>, Vec<ExpectedRow>)> {
        match self {
            Command::Write(write) => Some((write, Vec::new())),
            Command::ConditionalWrite(ConditionalWrite { write, expected }) => Some((write, expected)),
            Command::Advance { .. } | Command::RaiseFloor { .. } | Command::DropObject { .. } => None,
        }
    }
}

/// Id of a request that was sent with a key: the hash of (principal, object, key), and the hash of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, BorrowDecode)]
pub struct RequestId {
    pub key: [u8; 16],
    pub content: [u8; 16],
}

/// Effect of a row operation. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Action {
    /// The document replaces the row.
    Upsert = 1,
    /// The document is folded into the row.
    Merge = 2,
    /// The row is gone; a later write of the same id is a new row.
    Delete = 3,
    /// Hangs on the row of this id and makes none of its own.
    Comment = 4,
}

impl Action {
    pub fn from_byte(byte: u8) -> Option<Action> {
        [Action::Upsert, Action::Merge, Action::Delete, Action::Comment].into_iter().find(|a| *a as u8 == byte)
    }
}

/// One row of a write.
#[derive(Clone, Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub struct RowOp<'a> {
    pub id: &'a str,
    pub action: Action,
    /// Given by the client or the default for a new row; ignored where a merge finds a row. For a comment its own id:
    /// the same comment sent again replaces itself.
    pub span_id: &'a str,
    pub root_span_id: &'a str,
    pub is_root: bool,
    /// Microseconds since the epoch, UTC.
    pub created: i64,
    /// JSON text, one object: the whole row (upsert), what to fold in (merge), `{}` (delete), the comment (comment).
    pub doc: &'a [u8],
    /// JSON text `{"merge_paths": [[..]], "array_delete": [{"path": [..], "delete": [..]}]}`, or empty.
    pub rules: &'a [u8],
    /// JSON text `{"source": .., "metadata": ..}` for the audit log, or empty.
    pub audit: &'a [u8],
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("a command has version {0}, which is newer than this program: upgrade the program")]
    Newer(u8),
    #[error("a command with the unknown tag {0}")]
    Tag(u8),
    #[error("a command cannot be decoded: {0}")]
    Body(String),
}

/// A command that no replica would decode again. Ask `Command::check_limits` before proposing one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TooLarge {
    #[error("a write of {0} rows: at most {ROWS_PER_WRITE_MAX} fit; send the rest in another request")]
    Rows(usize),
    #[error("a write of {0} bytes: at most {COMMAND_BYTES_MAX} fit; send the rest in another request")]
    Bytes(usize),
}

/// Outcome of one command. Never stored; replicas compute it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Written {
        xact: Xact,
    },
    /// The same request was applied before, with this id; nothing changed.
    Duplicate {
        xact: Xact,
    },
    /// The request's key was used before with other content; nothing changed.
    KeyReused {
        xact: Xact,
    },
    /// The object was dropped; nothing changed.
    ObjectGone,
    /// It cannot be applied to what is there, and every replica finds so: a merge that makes too large a row, or one that
    /// does not fold. Nothing changed. `row` counts from 0 within the write.
    Refused {
        row: u32,
        reason: String,
    },
    /// A row does not have the version that the write expects; nothing changed. `row` counts from 0 within the write.
    Conflict {
        row: u32,
    },
    /// Advance, floor and drop answer the shard's last id.
    Done {
        last: Xact,
    },
    /// The catalog's answer (see `catalog`).
    Catalog(crate::catalog::CatalogOutcome),
}
