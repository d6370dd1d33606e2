//! Service for jobs on other nodes.
//!
//! The name of a job contains its node. The request to that node is on behalf of the reader, and the node authorizes
//! the reader again.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{DelegatedService, NoAnswer, ObjectAccess, ServiceNames};
use assay_storage_model::{NodeId, OrgId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AsyncJobs, JobStatus, JobView, ResultRange, WAIT_MAX, record};
use crate::{AskError, Home, Masks, packed};

pub(crate) const JOBS: ServiceNames = ServiceNames { plain: "query.later", on_behalf: "query.later.for" };
/// Version of the messages. A node accepts no other version.
const FORMAT: u16 = 1;
/// Time to read and send a page, in addition to the wait for rows.
const ON_THE_WAY: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
struct JobQuestion {
    format: u16,
    org: OrgId,
    name: Uuid,
    wanted: Option<ResultRange>,
}

/// Head of a response; the rows follow it.
#[derive(Debug, Serialize, Deserialize)]
struct JobHead {
    status: JobStatus,
    error: Option<String>,
    homes: Vec<Home>,
    #[serde(default, skip_serializing_if = "Masks::is_empty")]
    masks: Masks,
    next: Option<u64>,
}

impl AsyncJobs {
    /// Returns a job on any node, or `None` if the organization has no such job. `asker` is the credential for other
    /// nodes.
    pub async fn look(
        self: &Arc<AsyncJobs>,
        asker: &[u8],
        org: OrgId,
        name: Uuid,
        wanted: Option<ResultRange>,
    ) -> Result<Option<JobView>, AskError> {
        let cluster = &self.context.cluster;
        match record::node_of(name) {
            Some(node) if node == cluster.node() => self.look_here(org, name, wanted).await,
            // The jobs of a removed node are lost.
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
        wanted: Option<ResultRange>,
    ) -> Result<Option<JobView>, AskError> {
        let asking = JobQuestion { format: FORMAT, org, name, wanted };
        let body = Bytes::from(serde_json::to_vec(&asking).expect("plain data encodes"));
        let silent = |why| format!("this query is on node {node}, which does not respond: {why}");
        let (service, body) = self.context.cluster.addressed(node, JOBS, asker, body);
        let answer = self.context.cluster.ask(node, service, body, WAIT_MAX + ON_THE_WAY).await;
        let answer = answer.map_err(|why| AskError::Unavailable(silent(why.to_string())))?;
        let unread = || AskError::Unavailable(silent("its response cannot be decoded".into()));
        let (head, lines): (Result<Option<JobHead>, AskError>, Bytes) = packed::unpack(answer).ok_or_else(unread)?;
        Ok(head?.map(|JobHead { status, error, homes, masks, next }| JobView {
            status,
            error,
            homes,
            masks,
            lines,
            next,
        }))
    }
}

/// Service that other nodes call.
#[derive(Debug)]
pub(crate) struct JobsService(pub Arc<AsyncJobs>);

impl DelegatedService for JobsService {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        _from: NodeId,
        body: Bytes,
        _within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let jobs = Arc::clone(&self.0);
        async move {
            let bad = |why: serde_json::Error| NoAnswer::Refused(format!("the request cannot be decoded: {why}"));
            let JobQuestion { format, org, name, wanted } = serde_json::from_slice(&body).map_err(bad)?;
            if format != FORMAT {
                let why = format!("this node reads queries of format {FORMAT}, but this one has format {format}");
                return Err(NoAnswer::Refused(why));
            }
            let view = match jobs.look_here(org, name, wanted).await {
                Ok(Some(view)) => may_read(&jobs, principal, &view).await?.then_some(view),
                Ok(None) => None,
                Err(why) => return Ok(packed::pack(&Err::<Option<JobHead>, AskError>(why), &Bytes::new())),
            };
            let (head, lines) = match view {
                Some(JobView { status, error, homes, masks, lines, next }) => {
                    (Some(JobHead { status, error, homes, masks, next }), lines)
                }
                None => (None, Bytes::new()),
            };
            Ok(packed::pack(&Ok::<_, AskError>(head), &lines))
        }
        .boxed()
    }
}

/// Returns whether the principal may read all objects of the job.
///
/// A job that it may not read is treated as missing. A request without a principal is refused.
async fn may_read(jobs: &AsyncJobs, principal: Option<Bytes>, view: &JobView) -> Result<bool, NoAnswer> {
    let is_named = principal.is_some();
    let objects = view.homes.iter().map(|home| home.object).collect();
    match jobs.context.cluster.check(principal, ObjectAccess::Read, objects).await {
        Ok(()) => Ok(true),
        Err(NoAnswer::Refused(_)) if is_named => Ok(false),
        Err(why) => Err(why),
    }
}
