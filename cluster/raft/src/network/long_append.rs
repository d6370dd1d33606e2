//! Appends of many bytes, on links that need longer for them than openraft waits.
//!
//! openraft drops an append after one heartbeat (120 ms) and sends it again, whole: on a slow link it would never
//! arrive. It also sends a follower one message at a time, so there are no heartbeats during an append. So such an
//! append continues across openraft's tries, each of which waits for it, with heartbeats sent concurrently. The
//! response reported to openraft is that the follower has the entries before the append. That is the meaning of a
//! heartbeat's response, so openraft counts the follower as alive, and retries at once.
//!
//! openraft takes the start of the successful try for the follower's contact time. That may be a heartbeat too late; no
//! read and no election relies on it (`read_index` asks, followers have clocks of their own).

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

/// Up to here an append is as quick as a heartbeat, and lost if it has no answer as soon. Above it travels in bulk.
pub(crate) const QUICK_BYTES: u64 = 4 << 10;
/// Time limit of an append in addition to the time for its bytes. The transport detects dead connections by itself;
/// this covers other failures.
const WITHIN: Duration = Duration::from_secs(1);
/// The slowest link that is waited for. Sixteen groups that send at once over 50 Mbit/s have three times as much each.
const BYTES_PER_SECOND_MIN: u64 = 128 << 10;
/// Time without a response after which a concurrent heartbeat is sent.
const QUIET_MAX: Duration = Duration::from_millis(60);

pub(crate) type AppendResponse = Shared<BoxFuture<'static, Result<Bytes, PeerError>>>;

/// An append in flight, polled only by its waiters: without any it ends.
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
    /// `sent` is the append, whose last entry is `last`, on its way.
    pub fn new(append: &AppendOf, last: LogIdOf, sent: BoxFuture<'static, Result<Bytes, PeerError>>) -> LongAppend {
        let answer = sent.shared();
        LongAppend { vote: append.vote, prev: append.prev_log_id, last, begun: Instant::now(), answer }
    }

    /// Returns whether that append begins like this one. One leader's entries never change: their common part is equal.
    pub fn begins_as(&self, append: &AppendOf) -> bool {
        self.vote == append.vote && self.prev == append.prev_log_id
    }

    pub fn next_heartbeat(&self) -> Instant {
        self.begun + QUIET_MAX
    }

    /// The answer to an append that begins as this one and ends at `last`.
    pub fn answer_to(&self, last: LogIdOf, answer: AppendedOf) -> AppendedOf {
        let matching = match answer {
            AppendEntriesResponse::Success => Some(self.last),
            AppendEntriesResponse::PartialSuccess(matching) => matching,
            AppendEntriesResponse::Conflict | AppendEntriesResponse::HigherVote(_) => return answer,
        };
        if matching >= Some(last) { AppendedOf::Success } else { AppendedOf::PartialSuccess(matching) }
    }
}
