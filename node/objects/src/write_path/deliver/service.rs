//! Service for writes that other nodes forward to the leader of a shard.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{Attempt, DelegatedService, NoAnswer, ObjectAccess, Prefer, Route, ServiceNames, decode_frames};
use assay_node_auth::Asker;
use assay_node_limits::Holder;
use assay_storage_model::{GroupId, NodeId, NotWritten, ObjectKey, WriteFailure, WriteOutcome};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;
use uuid::Uuid;

use super::{ANSWER_AFTER_MAX, answered, legacy, send_here};
use crate::Patience;
use crate::write_path::outcomes::WriteAttempt;
use crate::write_path::registry::ObjectRegistry;
use crate::write_path::work::{Encoded, Work};

/// Upper bound of the writes in one message.
const WRITES_MAX: usize = 1024;

/// Form of the outcomes in the response to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutcomeForm {
    /// Outcomes of the storage model.
    Outcomes,
    /// Format of versions before 0.6.
    Legacy,
}

impl OutcomeForm {
    pub const ALL: [OutcomeForm; 2] = [OutcomeForm::Outcomes, OutcomeForm::Legacy];

    /// Returns the service that responds in this form.
    pub fn service(self) -> ServiceNames {
        match self {
            OutcomeForm::Outcomes => {
                ServiceNames { plain: "objects.write.outcomes", on_behalf: "objects.write.outcomes.for" }
            }
            OutcomeForm::Legacy => ServiceNames { plain: "objects.write", on_behalf: "objects.write.for" },
        }
    }

    pub fn encode(self, outcomes: Vec<WriteOutcome>) -> Bytes {
        match self {
            OutcomeForm::Outcomes => serde_json::to_vec(&outcomes).expect("plain data encodes").into(),
            OutcomeForm::Legacy => legacy::encode(outcomes).into(),
        }
    }

    pub fn decode(self, response: &[u8]) -> Option<Vec<WriteOutcome>> {
        match self {
            OutcomeForm::Outcomes => serde_json::from_slice(response).ok(),
            OutcomeForm::Legacy => legacy::decode(response),
        }
    }
}

/// Handler of forwarded writes.
pub(crate) struct WriteService {
    pub registry: Arc<ObjectRegistry>,
    pub form: OutcomeForm,
}

impl fmt::Debug for WriteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteService").field("form", &self.form).finish_non_exhaustive()
    }
}

/// Returns the credential that holds the reservations of forwarded writes.
///
/// Without a known principal, it is the sending node, which shares its reservations between credentials itself.
fn sharer(principal: Option<&Bytes>, from: NodeId) -> Uuid {
    let who = principal.and_then(|bytes| Asker::from_bytes(bytes)?.principal());
    who.map_or(Uuid::from_u128(u128::from(from.0)), |who| who.credential.counted_as())
}

impl DelegatedService for WriteService {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        from: NodeId,
        body: Bytes,
        within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let (registry, form) = (Arc::clone(&self.registry), self.form);
        let until = Instant::now() + within.saturating_sub(ANSWER_AFTER_MAX); // D4
        let patience = Patience { until, credential: sharer(principal.as_ref(), from) };
        async move {
            let bad = || NoAnswer::Refused("the forwarded writes cannot be decoded".into());
            let commands = decode_frames(body, WRITES_MAX).ok_or_else(bad)?;
            let writes: Vec<Encoded> =
                commands.into_iter().map(Encoded::read).collect::<Result<_, _>>().map_err(|_| bad())?;
            let objects: BTreeSet<ObjectKey> = writes.iter().map(|write| write.object).collect();
            registry.cluster.check(principal, ObjectAccess::Write, objects.into_iter().collect()).await?;
            Ok(form.encode(take(&registry, writes, patience).await))
        }
        .boxed()
    }
}

/// Accepts the writes of shards that this node leads. The others are refused and not forwarded to a third node.
async fn take(registry: &Arc<ObjectRegistry>, writes: Vec<Encoded>, patience: Patience) -> Vec<WriteOutcome> {
    let group = |write: &Encoded| GroupId::of_shard(registry.cluster.locate(&write.object));
    let is_here = |write: &Encoded| registry.cluster.route(group(write), Prefer::Leader) == Route::Here;
    let here: Vec<bool> = writes.iter().map(is_here).collect();
    let mut outcomes: Vec<WriteOutcome> = writes.iter().map(|_| Err(NotWritten::NotLeader.into())).collect();
    let mine: Vec<Work> =
        writes.into_iter().zip(&here).filter(|(_, here)| **here).map(|(write, _)| Work::Encoded(write)).collect();
    let Some(org) = mine.first().map(|work| work.object().org) else { return outcomes };
    let holder = Holder::new(org.0, patience.credential);
    let sent = send_here(registry, holder, mine, Vec::new(), patience.until).await;
    let places = here.iter().enumerate().filter(|(_, here)| **here).map(|(place, _)| place);
    match sent {
        Ok(sent) => {
            let taken = answered(sent.attempts, patience.until).await;
            places.zip(taken).for_each(|(place, attempt)| outcomes[place] = told(attempt));
        }
        Err(why) => places.for_each(|place| outcomes[place] = told(Attempt::Done(Err(why.clone().into())))),
    }
    outcomes
}

/// Returns the outcome for the sender. A node that shuts down responds that it does not lead, so that the sender
/// retries.
fn told(attempt: WriteAttempt) -> WriteOutcome {
    match attempt {
        Attempt::Done(Err(WriteFailure::NotWritten(NotWritten::Closing))) | Attempt::Elsewhere(_) => {
            Err(NotWritten::NotLeader.into())
        }
        Attempt::Done(outcome) => outcome,
        Attempt::Busy(_) => Err(NotWritten::busy(super::BUSY_THERE).into()),
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_model::Xact;
    use assay_storage_model::command::Outcome;

    use super::*;

    #[test]
    fn outcomes_are_read_in_the_form_in_which_they_are_written() {
        let outcomes: Vec<WriteOutcome> = vec![
            Ok(Outcome::Duplicate { xact: Xact::new(1, 2) }),
            Err(NotWritten::NoSpace("full".into()).into()),
            Err(WriteFailure::Unknown { why: "lost".into() }),
        ];
        for form in OutcomeForm::ALL {
            assert_eq!(form.decode(&form.encode(outcomes.clone())), Some(outcomes.clone()));
        }
    }

    #[test]
    fn a_node_that_shuts_down_says_that_it_does_not_lead() {
        let closing = told(Attempt::Done(Err(NotWritten::Closing.into())));
        assert_eq!(closing, Err(NotWritten::NotLeader.into()));
    }
}
