//! Jobs of other nodes: the name of a job says which node has it. That node is asked on behalf of the reader, and checks
//! once more that the reader may read what the job asked of.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{DelegatedService, NoAnswer, ObjectAccess, ServiceNames};
use assay_storage_model::{NodeId, OrgId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Later, Seen, Status, WAIT_MAX, Wanted, record};
use crate::{AskError, Home, packed};

pub(crate) const LATER: ServiceNames = ServiceNames { plain: "query.later", on_behalf: "query.later.for" };
/// How questions and answers are written. A node reads its own alone.
const FORMAT: u16 = 1;
/// Beside what is waited for rows: a page is read and sent within it.
const ON_THE_WAY: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
struct Asking {
    format: u16,
    org: OrgId,
    name: Uuid,
    wanted: Option<Wanted>,
}

/// What is seen of a job; its rows come behind it.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    status: Status,
    error: Option<String>,
    homes: Vec<Home>,
    next: Option<u64>,
}

impl Later {
    /// None where there is no such job for this organization. `asker` is on whose behalf another node is asked.
    pub async fn look(
        self: &Arc<Later>,
        asker: &[u8],
        org: OrgId,
        name: Uuid,
        wanted: Option<Wanted>,
    ) -> Result<Option<Seen>, AskError> {
        let cluster = &self.office.cluster;
        match record::node_of(name) {
            Some(node) if node == cluster.node() => self.look_here(org, name, wanted).await,
            // Of a node that is no part of the cluster any more nothing is left.
            Some(node) if cluster.has_node(node) => self.look_there(node, asker, org, name, wanted).await,
            Some(_) | None => Ok(None),
        }
    }

    async fn look_there(
        &self,
        node: NodeId,
        asker: &[u8],
        org: OrgId,
        name: Uuid,
        wanted: Option<Wanted>,
    ) -> Result<Option<Seen>, AskError> {
        let asking = Asking { format: FORMAT, org, name, wanted };
        let body = Bytes::from(serde_json::to_vec(&asking).expect("plain data encodes"));
        let silent = |why| format!("this query is on node {node}, and that one gives no answer: {why}");
        let (service, body) = self.office.cluster.addressed(node, LATER, asker, body);
        let answer = self.office.cluster.ask(node, service, body, WAIT_MAX + ON_THE_WAY).await;
        let answer = answer.map_err(|why| AskError::Unavailable(silent(why.to_string())))?;
        let unread = || AskError::Unavailable(silent("what it says does not read".into()));
        let (head, lines): (Result<Option<Head>, AskError>, Bytes) = packed::unpack(answer).ok_or_else(unread)?;
        Ok(head?.map(|Head { status, error, homes, next }| Seen { status, error, homes, lines, next }))
    }
}

/// Answers other nodes.
#[derive(Debug)]
pub(crate) struct LaterDoor(pub Arc<Later>);

impl DelegatedService for LaterDoor {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        _from: NodeId,
        body: Bytes,
        _within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let later = Arc::clone(&self.0);
        async move {
            let bad = |why: serde_json::Error| NoAnswer::Refused(format!("a question that does not read: {why}"));
            let Asking { format, org, name, wanted } = serde_json::from_slice(&body).map_err(bad)?;
            if format != FORMAT {
                let why = format!("this node reads questions of format {FORMAT}, and this one has format {format}");
                return Err(NoAnswer::Refused(why));
            }
            let seen = match later.look_here(org, name, wanted).await {
                Ok(Some(seen)) => may_read(&later, principal, &seen).await?.then_some(seen),
                Ok(None) => None,
                Err(why) => return Ok(packed::pack(&Err::<Option<Head>, AskError>(why), &Bytes::new())),
            };
            let (head, lines) = match seen {
                Some(Seen { status, error, homes, lines, next }) => (Some(Head { status, error, homes, next }), lines),
                None => (None, Bytes::new()),
            };
            Ok(packed::pack(&Ok::<_, AskError>(head), &lines))
        }
        .boxed()
    }
}

/// Whether the principal may read all that the job asked of. A job that it may not read is as good as missing; a question
/// without a principal is refused as such.
async fn may_read(later: &Later, principal: Option<Bytes>, seen: &Seen) -> Result<bool, NoAnswer> {
    let is_named = principal.is_some();
    let objects = seen.homes.iter().map(|home| home.object).collect();
    match later.office.cluster.check(principal, ObjectAccess::Read, objects).await {
        Ok(()) => Ok(true),
        Err(NoAnswer::Refused(_)) if is_named => Ok(false),
        Err(why) => Err(why),
    }
}
