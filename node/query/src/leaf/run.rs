//! Execution of a query over the objects of this node, part by part.

use std::sync::Arc;
use std::time::Instant;

use assay_node_btql::bound::Bound;
use assay_node_btql::deep;
use assay_node_engine::{Ask, LeafRows, Partial, PartialFormat, Position, Shared, Watch};
use assay_node_running_queries::QueryProgress;
use assay_storage_model::{ShardId, Xact};
use bytes::Bytes;

use crate::AskError;
use crate::context::QueryContext;
use crate::leaf::{LeafPart, LeafRequest, StopOnDrop, What};

/// Form in which a part is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartForm {
    /// Unencoded, for this node.
    Own,
    /// Encoded for another node, on the thread that computed it.
    Encoded,
}

/// Query on this node whose parts are computed one after the other.
pub(crate) struct LeafRun {
    context: Arc<QueryContext>,
    request: Arc<LeafRequest>,
    /// Versions at which shards are read.
    pub versions: Vec<(ShardId, Xact)>,
    progress: Arc<QueryProgress>,
    /// State of the query. `None` while a thread works on it, and after an error.
    work: Option<LeafWork>,
}

struct LeafWork {
    /// Bound query. The first part binds it on its own thread, because patterns take time to compile.
    bound: Option<Bound>,
    rows: LeafRows,
}

impl std::fmt::Debug for LeafRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeafRun").field("versions", &self.versions).finish_non_exhaustive()
    }
}

impl LeafRun {
    /// Opens the objects of a request for rows. The parts note their use of resources in `progress`.
    pub async fn begin(
        context: &Arc<QueryContext>,
        request: LeafRequest,
        progress: Arc<QueryProgress>,
    ) -> Result<LeafRun, AskError> {
        let What::Part { limit, after, write, until, seed, bytes } = request.what else {
            return Err(AskError::Internal("hashes were requested as rows".into()));
        };
        let (sources, versions) = request.sources(context).await?;
        let after = after.map(|(place, xact, object)| Position { place, xact, object, write });
        let rows = LeafRows::new(sources, Ask { limit, bytes, after, until, seed });
        let work = Some(LeafWork { bound: None, rows });
        Ok(LeafRun { context: Arc::clone(context), request: Arc::new(request), versions, progress, work })
    }

    /// Computes the next part. Also returns whether it is the last one.
    pub async fn next(&mut self, until: Instant, form: PartForm) -> Result<(LeafPart, bool), AskError> {
        let context = &self.context;
        let Some(mut work) = self.work.take() else {
            return Err(AskError::Internal("a part is computed twice".into()));
        };
        let progress = Arc::clone(&self.progress);
        let watch = Watch::counting(until, self.request.bytes_max, &context.memory, progress);
        let _stop = StopOnDrop(watch.clone());
        let who = self.request.who();
        let shared = context.shared_by(who);
        let workers = shared.workers.clone();
        let request = Arc::clone(&self.request);
        let step = move || {
            let part = workers.work(&watch, || deep(|| work.next(&request, &shared, &watch, form)));
            (part.unwrap_or_else(|why| Err(why.into())), work)
        };
        let (part, work) = context.threads.run(who, until, step).await?;
        if let Err(AskError::Damaged(why)) = &part {
            tracing::error!(why, "a query met damage");
            self.versions.iter().for_each(|(shard, _)| context.cluster.suspect(*shard));
        }
        let is_last = work.rows.has_ended();
        self.work = Some(work);
        Ok((part?, is_last))
    }
}

impl LeafWork {
    fn next(
        &mut self,
        request: &LeafRequest,
        shared: &Shared,
        watch: &Watch,
        form: PartForm,
    ) -> Result<LeafPart, AskError> {
        if self.bound.is_none() {
            self.bound = Some(request.bind()?);
        }
        let Some(bound) = &self.bound else { return Err(AskError::Internal("a query is not bound".into())) };
        let part: Partial = self.rows.next(bound, shared, watch)?;
        Ok(match form {
            PartForm::Own => LeafPart::Own(part),
            PartForm::Encoded => LeafPart::Part(Bytes::from(part.encode(PartialFormat::Columns)?)),
        })
    }
}
