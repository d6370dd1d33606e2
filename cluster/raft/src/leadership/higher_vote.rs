//! Step-down of a leader that learns of a higher vote from a follower's response.
//!
//! openraft 0.9.25 ends the task that replicates to a follower on such a response, and sends its core a message. The
//! core may order a snapshot for that follower before it has read the message. It then finds the task gone, treats that
//! as a failed read of its storage, and stops. Such a response is therefore withheld from openraft. Its task sees an
//! unreachable follower, and the vote reaches the core like any other vote.

use std::sync::{Arc, Weak};

use openraft::Vote;
use openraft::raft::AppendEntriesRequest;
use openraft::{CommittedLeaderId, LogId};
use tokio::sync::watch;

use crate::types::{Consensus, RaftOf, Replica};

/// Index that no log reaches.
const BEYOND_ANY_LOG: u64 = u64::MAX - 1;

/// Highest vote in a response so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct HigherVotes(Arc<watch::Sender<Option<Vote<Replica>>>>);

impl HigherVotes {
    pub fn tell(&self, vote: Vote<Replica>) {
        self.0.send_if_modified(|told| {
            let is_higher = told.is_none_or(|told| vote > told);
            if is_higher {
                *told = Some(vote);
            }
            is_higher
        });
    }

    pub fn subscribe(&self) -> watch::Receiver<Option<Vote<Replica>>> {
        self.0.subscribe()
    }
}

/// Passes votes to consensus while the replica exists.
pub(crate) async fn step_down<T>(
    replica: Weak<T>,
    raft_of: impl Fn(&T) -> &RaftOf,
    mut told: watch::Receiver<Option<Vote<Replica>>>,
) {
    while told.changed().await.is_ok() {
        let vote = *told.borrow_and_update();
        let (Some(vote), Some(replica)) = (vote, replica.upgrade()) else { return };
        let raft = raft_of(&replica);
        yield_to(raft, vote).await;
    }
}

/// Makes consensus accept a vote that is higher than its own: a leader steps down.
pub(crate) async fn yield_to(raft: &RaftOf, vote: Vote<Replica>) {
    let is_news = vote > raft.server_metrics().borrow().vote;
    if is_news && let Err(stopped) = raft.append_entries(carrier_of(vote)).await {
        tracing::debug!(%stopped, "a higher vote arrived for an ended replica");
    }
}

/// Append that fits no log. Its vote is granted before that is detected, and nothing else happens.
fn carrier_of(vote: Vote<Replica>) -> AppendEntriesRequest<Consensus> {
    let prev_log_id = Some(LogId::new(CommittedLeaderId::new(vote.leader_id().term, 0), BEYOND_ANY_LOG));
    AppendEntriesRequest { vote, prev_log_id, entries: Vec::new(), leader_commit: None }
}
