//! Forced recovery, which reduces a group to one replica after the others are permanently lost.
//!
//! The log of the replica gets one more entry: a membership of this replica alone, in a term far above every term it
//! has seen. A member acts on the newest membership in its log. At its next start it therefore elects itself and
//! commits the content of its log. Entries that only the lost replicas had are gone. Entries of this replica without a
//! majority are kept, which no guarantee forbids, because their writers got an unknown outcome.
//!
//! The replica may continue under another number, so that it ignores messages of the lost ones to the old number.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use assay_storage_log::{GroupLog, LogRecord};
use assay_storage_model::{LogPosition, NodeId, ReplicaId};
use openraft::{CommittedLeaderId, EntryPayload, LogId, Vote};

use crate::fatal::OnFatal;
use crate::log::encoding::{self, BadRecord};
use crate::log::journal::Journal;
use crate::types::{EntryOf, Home, MembershipOf, log_id_of};
use crate::work::Work;

/// Number of skipped terms.
///
/// The lost replicas may have reached terms unknown to this one. Entries of a higher term would count as newer than
/// entries acknowledged after the recovery. An election takes at least 400 ms, so this is five days of continuous
/// elections.
pub const TERMS_SKIPPED: u64 = 1 << 20;

/// Plan of a forced recovery. Planning writes nothing, so that a recovery of many groups can examine all of them first.
#[derive(Clone, Debug)]
pub struct ForcedRecovery {
    log: GroupLog,
    replica: ReplicaId,
    node: NodeId,
    /// Position to which the log is purged, if the process ended between the installation of a snapshot and its record
    /// in the log. Otherwise the new entry would lie inside the state, where it is never read.
    follow: Option<LogPosition>,
    index: u64,
    term: u64,
}

impl ForcedRecovery {
    /// Plans the recovery while the log is not in use.
    ///
    /// The replica continues under the number `replica`, and `sealed` is the position of its state.
    pub fn plan(
        log: GroupLog,
        replica: ReplicaId,
        node: NodeId,
        sealed: Option<LogPosition>,
    ) -> io::Result<ForcedRecovery> {
        let group = log.group();
        let state = log.state();
        let damaged = |error: BadRecord| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let vote = state.vote.as_deref().map(encoding::decode_vote).transpose().map_err(damaged)?;
        let purged = state.purged.as_ref().map(|purged| encoding::decode_log_id(&purged.note)).transpose();
        let purged = purged.map_err(damaged)?;
        let last = state.last.or_else(|| purged.map(|id| (id.index, id.leader_id.term)));
        let follow = sealed.filter(|sealed| last.is_none_or(|(index, _)| index < sealed.index));
        let last = follow.map(|sealed| (sealed.index, sealed.term.max(last.map_or(0, |(_, term)| term)))).or(last);
        let nothing = || io::Error::other(format!("group {group} has never had a log here"));
        let (last_index, last_term) = last.ok_or_else(nothing)?;
        let highest = vote.map_or(0, |vote| vote.leader_id.term).max(last_term);
        let used_up = || io::Error::other(format!("group {group} has no terms left"));
        let term = highest.checked_add(TERMS_SKIPPED).ok_or_else(used_up)?;
        Ok(ForcedRecovery { log, replica, node, follow, index: last_index + 1, term })
    }

    /// Writes the new vote and entry. A repetition only adds another such entry.
    pub async fn write(self) -> io::Result<()> {
        let ForcedRecovery { log, replica, node, follow, index, term } = self;
        let group = log.group();
        let journal =
            Journal::new(log, Work::Threads, OnFatal::call(move |why| tracing::error!(%group, why, "the log failed")));
        if let Some(sealed) = follow {
            journal.purge(sealed.index, encoding::encode_log_id(&log_id_of(sealed))).await?;
        }
        let homes = BTreeMap::from([(replica.0, Home { node: node.0 })]);
        let alone = MembershipOf::new(vec![BTreeSet::from([replica.0])], homes);
        let log_id = LogId::new(CommittedLeaderId::new(term, replica.0), index);
        let record = encoding::encode_record(EntryOf { log_id, payload: EntryPayload::Membership(alone) });
        // The vote is written first, because an entry of a term without a vote would look like damage.
        journal.save_vote(encoding::encode_vote(&Vote::new(term, replica.0))).await?;
        journal.append(vec![LogRecord { index, term, payload: record }]).await
    }
}
