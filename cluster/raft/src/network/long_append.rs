//! Long appends, for links that need more time for them than openraft waits.
//!
//! openraft drops an append after one heartbeat (120 ms) and sends the whole append again, so on a slow link it would
//! never arrive. It also sends a follower one message at a time, so there are no heartbeats during an append. A long
//! append therefore continues across the attempts of openraft, each of which waits for it, while heartbeats are sent
//! concurrently. The response reported to openraft is that the follower has the entries before the append. That is the
//! meaning of a heartbeat's response, so openraft considers the follower alive, and retries at once.
//!
//! openraft uses the start of the successful attempt as the follower's contact time. That may be a heartbeat too late,
//! but no read and no election relies on it. `read_index` asks, and followers have their own clocks.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use openraft::raft::AppendEntriesResponse;
use tokio::time::Instant;

use crate::apply::backlog::payload_bytes;
use crate::network::peers::PeerError;
use crate::network::wire::{AppendOf, AppendedOf, VoteOf};
use crate::types::LogIdOf;

/// Size up to which an append is sent like a heartbeat, with the same time limit. Larger appends use the bulk lane.
pub(crate) const QUICK_BYTES: u64 = 4 << 10;
/// Time limit of an append in addition to the time for its bytes.
///
/// The transport detects dead connections by itself. The limit covers other failures.
const WITHIN: Duration = Duration::from_secs(1);
/// Slowest supported link, in bytes a second. Sixteen groups that send concurrently over 50 Mbit/s have three times as
/// much each.
const BYTES_PER_SECOND_MIN: u64 = 128 << 10;
/// Time without a response after which a concurrent heartbeat is sent.
const QUIET_MAX: Duration = Duration::from_millis(60);

pub(crate) type AppendResponse = Shared<BoxFuture<'static, Result<Bytes, PeerError>>>;

/// Append in flight. Only its waiters poll it, so without any it ends.
#[derive(Clone, Debug)]
pub(crate) struct LongAppend {
    vote: VoteOf,
    prev: Option<LogIdOf>,
    last: LogIdOf,
    begun: Instant,
    pub answer: AppendResponse,
}

pub(crate) fn bytes_of(append: &AppendOf) -> u64 {
    append.entries.iter().map(|entry| payload_bytes(&entry.payload)).sum()
}

/// Returns the time limit of an append with this many bytes.
pub(crate) fn time_for(bytes: u64) -> Duration {
    WITHIN + Duration::from_millis(bytes * 1000 / BYTES_PER_SECOND_MIN)
}

impl LongAppend {
    /// Creates a long append from the future `sent`, which sends the entries up to `last`.
    pub fn new(append: &AppendOf, last: LogIdOf, sent: BoxFuture<'static, Result<Bytes, PeerError>>) -> LongAppend {
        let answer = sent.shared();
        LongAppend { vote: append.vote, prev: append.prev_log_id, last, begun: Instant::now(), answer }
    }

    /// Returns whether this append starts like another one. A leader's entries never change, so their common part is
    /// equal.
    pub fn begins_as(&self, append: &AppendOf) -> bool {
        self.vote == append.vote && self.prev == append.prev_log_id
    }

    pub fn next_heartbeat(&self) -> Instant {
        self.begun + QUIET_MAX
    }

    /// Returns the response to an append with the same start that ends at `last`.
    pub fn answer_to(&self, last: LogIdOf, answer: AppendedOf) -> AppendedOf {
        let matching = match answer {
            AppendEntriesResponse::Success => Some(self.last),
            AppendEntriesResponse::PartialSuccess(matching) => matching,
            AppendEntriesResponse::Conflict | AppendEntriesResponse::HigherVote(_) => return answer,
        };
        if matching >= Some(last) { AppendedOf::Success } else { AppendedOf::PartialSuccess(matching) }
    }
}
