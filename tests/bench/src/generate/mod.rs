//! A stream of AI traces as from a team's applications, made from one seed.
//!
//! ```text
//! workload (seed) ── object n ── trace ── ten spans: a root (task or eval), four llm, three tool, two score
//!                                         │
//!                        one upsert, or two steps: a start row, and a merge row a few writes later
//!                        (one merge in twenty: long after, so that it meets a sealed row)
//! ```
//! Everything about a row follows from (seed, object, row number): objects are generated on any number of threads, and
//! a checker computes the expected document of any row. The distribution into writes follows from the stream alone, so
//! the same seed gives the same bytes.

pub mod dice;
pub mod events;
pub mod expected;
pub mod row;
pub mod stream;
pub mod words;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use uuid::{Builder, Uuid};

pub use events::GeneratedEvents;
pub use expected::Expected;
pub use row::{Part, Row};
pub use stream::{Counts, EntryStream, GeneratedEntry, GeneratedWrite, Merged, ObjectStream};

use dice::derive;
use row::Family;

pub const SPANS_PER_TRACE: u64 = 10;
pub const ROWS_PER_WRITE: usize = 100;
/// Share of merges that go to rows written long ago.
pub const LATE_MERGES: f64 = 0.05;
/// Default age of a late merge's target, in writes of the object.
pub const LATE_WRITES: u64 = 150;
/// 2026-10-01 00:00 UTC: behind every clock that runs this, since a write from the future would be refused.
pub const START_MICROS: i64 = 1_790_812_800_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Documents of 2 KB, give or take a tenth.
    Even,
    /// Log-normal sizes with a mean of 2 KB, up to 1 MB.
    Mixed,
}

impl Profile {
    pub fn name(self) -> &'static str {
        match self {
            Profile::Even => "even",
            Profile::Mixed => "mixed",
        }
    }
}

impl FromStr for Profile {
    type Err = String;
    fn from_str(text: &str) -> Result<Profile, String> {
        [Profile::Even, Profile::Mixed]
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or_else(|| format!("`{text}` is no profile: use even or mixed"))
    }
}

/// Parameters of the generated stream.
#[derive(Clone, Debug)]
pub struct Workload {
    pub seed: u64,
    pub profile: Profile,
    /// Share of spans that are written in two steps: 0 to 1.
    pub merges: f64,
    pub rows_per_write: usize,
    /// Minimum number of writes of its object before a late merge (the maximum is twice as many).
    pub late_writes: u64,
    pub start_micros: i64,
}

impl Workload {
    pub fn new(seed: u64, profile: Profile, merges: f64) -> Workload {
        Workload {
            seed,
            profile,
            merges,
            rows_per_write: ROWS_PER_WRITE,
            late_writes: LATE_WRITES,
            start_micros: START_MICROS,
        }
    }

    /// Object `n`: every fourth is an experiment, the others are project logs.
    pub fn object(&self, n: u64) -> ObjectKey {
        let seed = derive(self.seed, n);
        let org = OrgId(uuid_from(derive(self.seed, u64::MAX)));
        ObjectKey::new(org, Self::kind(n), uuid_from(seed))
    }

    /// Row `number` of object `n`, in the order in which they are started.
    pub fn row(&self, n: u64, number: u64) -> Row {
        self.family(n).row(number)
    }

    pub fn stream(&self, n: u64) -> ObjectStream {
        ObjectStream::new(self, n)
    }

    fn kind(n: u64) -> ObjectKind {
        if n % 4 == 3 { ObjectKind::Experiment } else { ObjectKind::ProjectLogs }
    }

    pub(crate) fn family(&self, n: u64) -> Family {
        Family {
            seed: derive(self.seed, n),
            profile: self.profile,
            in_experiment: Self::kind(n) == ObjectKind::Experiment,
            merges: self.merges,
            late_merges: LATE_MERGES,
            start_micros: self.start_micros,
        }
    }
}

fn uuid_from(seed: u64) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&derive(seed, 1).to_le_bytes());
    bytes[8..].copy_from_slice(&derive(seed, 2).to_le_bytes());
    Builder::from_random_bytes(bytes).into_uuid()
}
