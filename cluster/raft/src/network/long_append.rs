//! Appends of many bytes, on links that need longer for them than openraft waits.
//!
//! openraft lets go of an append after one heartbeat (120 ms) and sends it again, whole: on a slow link it would never
//! pass. And it sends a follower one thing at a time, so while an append is under way there are no heartbeats. So such an
//! append goes on between openraft's tries, each of which waits for it further, and a heartbeat goes beside it. Its
//! answer is passed on as: the follower has what comes before the entries. That is what a heartbeat asks and proves, so
//! openraft counts the follower as heard, and asks again at once.
//!
//! openraft takes the start of the try that hears the answer for the time when the follower spoke. That may be a
//! heartbeat too late; no read and no election relies on it (`read_index` asks, followers have clocks of their own).

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
/// Time that an append may take beside the time for its bytes. The transport notices dead connections by itself; this
/// is for what else may go wrong.
const WITHIN: Duration = Duration::from_secs(1);
/// The slowest link that is waited for. Sixteen groups that send at once over 50 Mbit/s have three times as much each.
const BYTES_PER_SECOND_MIN: u64 = 128 << 10;
/// After this time without an answer a heartbeat is sent beside it.
const QUIET_MAX: Duration = Duration::from_millis(60);

pub(crate) type AppendResponse = Shared<BoxFuture<'static, Result<Bytes, PeerError>>>;

/// An append that is under way, polled only by those who wait for it: let go of, it ends.
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

/// How long an append of so many bytes may take.
pub(crate) fn time_for(bytes: u64) -> Duration {
    WITHIN + Duration::from_millis(bytes * 1000 / BYTES_PER_SECOND_MIN)
}

impl LongAppend {
    /// `sent` is the append, whose last entry is `last`, on its way.
    pub fn new(append: &AppendOf, last: LogIdOf, sent: BoxFuture<'static, Result<Bytes, PeerError>>) -> LongAppend {
        let answer = sent.shared();
        LongAppend { vote: append.vote, prev: append.prev_log_id, last, begun: Instant::now(), answer }
    }

    /// Whether that append begins as this one. One leader's entries never change: as far as both go they are the same.
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
