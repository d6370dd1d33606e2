//! Making a group out of one replica, after the others are lost for good.
//!
//! The replica's log gets one more entry, a membership that names this replica alone, in a term above every one that the
//! replica has heard of. A member acts on the newest membership in its log, so at its next start it elects itself and
//! commits whatever its log holds. What only the lost replicas had is gone; what this one had and a majority did not is
//! kept, which no promise forbids: its writers were told that the outcome is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use assay_storage_log::{GroupLog, LogRecord};
use assay_storage_model::{LogPosition, NodeId, ReplicaId};
use openraft::{CommittedLeaderId, EntryPayload, LogId, Vote};

use crate::encoding::{self, BadRecord};
use crate::fatal::OnFatal;
use crate::journal::Journal;
use crate::types::{EntryOf, Home, MembershipOf, log_id_of};
use crate::work::Work;

/// Purges what a snapshot took the place of. Where a process ended after it installed one and before its log followed,
/// the state is ahead of the log, and an entry behind the log's end would lie inside the state, where nobody looks.
/// To be called before [`force_alone`], with the position that the state has reached.
pub async fn follow_state(log: GroupLog, sealed: Option<LogPosition>) -> io::Result<()> {
    let state = log.state();
    let last = state.last.map(|(index, _)| index).max(state.purged.map(|purged| purged.index));
    match sealed {
        Some(sealed) if Some(sealed.index) > last => {
            journal_of(log).purge(sealed.index, encoding::encode_log_id(&log_id_of(sealed))).await
        }
        _ => Ok(()),
    }
}

fn journal_of(log: GroupLog) -> Journal {
    let group = log.group();
    Journal::new(log, Work::Threads, OnFatal::call(move |why| tracing::error!(%group, why, "the log failed")))
}

/// To be called while nothing runs on the log. Doing it again adds another such entry and changes nothing else.
pub async fn force_alone(log: GroupLog, replica: ReplicaId, node: NodeId) -> io::Result<()> {
    let group = log.group();
    let journal = journal_of(log);
    let state = journal.state();
    let damaged = |error: BadRecord| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let vote = state.vote.as_deref().map(encoding::decode_vote).transpose().map_err(damaged)?;
    let purged = state.purged.as_ref().map(|purged| encoding::decode_log_id(&purged.note)).transpose();
    let purged = purged.map_err(damaged)?;
    let last = state.last.or_else(|| purged.map(|id| (id.index, id.leader_id.term)));
    let nothing = || io::Error::other(format!("group {group} has never had a log here"));
    let (index, last_term) = last.ok_or_else(nothing)?;
    let term = vote.map_or(0, |vote| vote.leader_id.term).max(last_term) + 1;
    let homes = BTreeMap::from([(replica.0, Home { node: node.0 })]);
    let alone = MembershipOf::new(vec![BTreeSet::from([replica.0])], homes);
    let log_id = LogId::new(CommittedLeaderId::new(term, replica.0), index + 1);
    let record = encoding::encode_record(EntryOf { log_id, payload: EntryPayload::Membership(alone) });
    // The vote first: an entry of a term that was never voted for would look like damage.
    journal.save_vote(encoding::encode_vote(&Vote::new(term, replica.0))).await?;
    journal.append(vec![LogRecord { index: index + 1, term, payload: record }]).await
}
