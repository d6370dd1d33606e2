//! Position in a group's log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One entry's place: the leader that proposed it and its index. Ordered by term, then replica, then index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct LogPosition {
    pub term: u64,
    /// The replica that led in that term.
    pub replica: u64,
    pub index: u64,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}-R{}.{}", self.term, self.replica, self.index)
    }
}

/// Consensus state of a state machine: the applied position, and the last membership as encoded by consensus (opaque
/// here).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Applied {
    pub position: Option<LogPosition>,
    pub membership: Vec<u8>,
}
