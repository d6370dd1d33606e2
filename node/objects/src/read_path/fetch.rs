//! Reads of pages: routing to a replica, the version of the view, and the iteration over traces.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{
    Attempt, Attempts, DelegatedService, LeaderCall, LeaderMessage, NoAnswer, ObjectAccess, Prefer, ROUTE_WAIT_MAX,
    RetryUntil, Round, ServiceNames, ViewError, decode_frames, encode_frames,
};
use assay_storage_model::{GroupId, NodeId, ObjectKey, PaginationKey, Xact};
use assay_storage_shard::{ShardError, Trace, View};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::read_path::page::{Cursor, PAGE_BYTES_MAX, Progress, before_of};
use crate::read_path::readers::Readers;
use crate::read_path::render::{event, object_fields};
use crate::replay::{HistoryRequest, past};
use crate::write_path::outcomes::RETRY_AFTER;
use crate::write_path::registry::ObjectRegistry;
use crate::{FetchPage, FetchRequest, ReadError, RowHome, RowsRequest};

pub(crate) const FETCH: ServiceNames = ServiceNames { plain: "objects.fetch", on_behalf: "objects.fetch.for" };
pub(crate) const ROWS: ServiceNames = ServiceNames { plain: "objects.rows", on_behalf: "objects.rows.for" };
pub(crate) const PAST: ServiceNames = ServiceNames { plain: "objects.past", on_behalf: "objects.past.for" };
/// Time limit of a page from another node.
const FETCH_MAX: Duration = Duration::from_secs(60);

/// Start of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    Newest,
    Before(PaginationKey),
    /// After this trace or, if it does not exist, before the key.
    After {
        root_span_id: String,
        otherwise: PaginationKey,
    },
}

/// Validated request for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    pub version: Option<Xact>,
    pub start: Start,
    pub limit: Option<u64>,
}

/// Validates a request for a page.
pub fn page_query(object: &ObjectKey, request: FetchRequest) -> Result<PageQuery, ReadError> {
    let refuse = |why: &str| Err(ReadError::BadRequest(why.to_owned()));
    let FetchRequest { limit, cursor, version, max_xact_id, max_root_span_id, stale: _ } = request;
    if let Some(text) = cursor.filter(|text| !text.is_empty()) {
        let Some(cursor) = Cursor::parse(&text, object) else {
            return refuse("Invalid cursor: pass the cursor of the previous page, of the same object");
        };
        if version.is_some_and(|version| version != cursor.version) {
            return refuse("`version` differs from the version of the page with this cursor");
        }
        return Ok(PageQuery { version: Some(cursor.version), start: Start::Before(cursor.before), limit });
    }
    let start = match (max_xact_id, max_root_span_id.filter(|root| !root.is_empty())) {
        (None, None) => Start::Newest,
        (Some(max), None) => Start::Before(before_of(max)),
        (Some(max), Some(root_span_id)) => Start::After { root_span_id, otherwise: before_of(max) },
        (None, Some(_)) => return refuse("`max_root_span_id` needs `max_xact_id` too"),
    };
    Ok(PageQuery { version, start, limit })
}

/// Read of an object. Each kind has its own service.
#[derive(Clone, Debug)]
pub(crate) enum Reading {
    Page(FetchRequest),
    Rows(RowsRequest),
    Past(HistoryRequest),
}

impl Reading {
    fn parse(service: ServiceNames, body: &[u8]) -> serde_json::Result<(RowHome, Reading)> {
        if service.plain == ROWS.plain {
            let (home, request) = serde_json::from_slice(body)?;
            return Ok((home, Reading::Rows(request)));
        }
        if service.plain == PAST.plain {
            let (home, request) = serde_json::from_slice(body)?;
            return Ok((home, Reading::Past(request)));
        }
        let (home, request) = serde_json::from_slice(body)?;
        Ok((home, Reading::Page(request)))
    }
}

/// Request for a page from another node.
struct ReadMessage<'a> {
    home: &'a RowHome,
    reading: &'a Reading,
}

impl LeaderMessage for ReadMessage<'_> {
    type Response = Result<FetchPage, ReadError>;
    const REPEATABLE: bool = true;

    fn service(&self) -> ServiceNames {
        match self.reading {
            Reading::Page(_) => FETCH,
            Reading::Rows(_) => ROWS,
            Reading::Past(_) => PAST,
        }
    }

    fn encode(&self) -> Bytes {
        let body = match self.reading {
            Reading::Page(request) => serde_json::to_vec(&(self.home, request)),
            Reading::Rows(request) => serde_json::to_vec(&(self.home, request)),
            Reading::Past(request) => serde_json::to_vec(&(self.home, request)),
        };
        Bytes::from(body.expect("plain data encodes"))
    }

    fn decode(&self, response: Bytes) -> Option<Self::Response> {
        unpack(response)
    }
}

/// Reads from the local replica, or from the leader if there is none or it is damaged.
///
/// A damaged replica is checked and gives up its leadership. The read is retried while leaders change.
pub(crate) async fn fetch(
    registry: &ObjectRegistry,
    readers: &Readers,
    home: RowHome,
    reading: Reading,
    asker: &Bytes,
) -> Result<FetchPage, ReadError> {
    let group = GroupId::of_shard(registry.cluster.locate(&home.object));
    let last = ReadError::Unavailable(format!("no leader of group {group} could be found in time; try again"));
    let mut read = PageCall { registry, readers, group, home, reading, asker, damaged_here: false, last };
    let until = RetryUntil::both(Instant::now() + ROUTE_WAIT_MAX);
    let Ok(mut pages) = registry.cluster.ask_leaders(&mut read, vec![(group, ())], until).await;
    match pages.pop() {
        Some(Ok(page)) => page,
        Some(Err(_)) | None => Err(read.last),
    }
}

/// Read that looks for a replica that can serve it.
struct PageCall<'a> {
    registry: &'a ObjectRegistry,
    readers: &'a Readers,
    group: GroupId,
    home: RowHome,
    reading: Reading,
    asker: &'a Bytes,
    damaged_here: bool,
    /// Error of the last attempt.
    last: ReadError,
}

impl LeaderCall for PageCall<'_> {
    type Request = ();
    type Response = Result<FetchPage, ReadError>;
    type Error = Infallible;

    fn prefer(&self, _round: usize) -> Prefer {
        if self.damaged_here { Prefer::Leader } else { Prefer::Own }
    }

    async fn attempt(&mut self, round: Round<()>) -> Attempts<Self> {
        let page = match round.node() {
            // The damaged local replica is about to give up its leadership.
            None if self.damaged_here => return Ok(vec![(0, Attempt::Elsewhere(()))]),
            None => fetch_here(self.registry, self.readers, self.home, self.reading.clone()).await,
            Some(node) => self.fetch_there(node).await,
        };
        let last = match page {
            // A replica may also have been removed meanwhile. Others have the rows.
            Err(ReadError::Damaged(why)) if round.node().is_none() && !self.is_alone() => {
                tracing::error!(group = %self.group, why, "retrying a read on another node");
                self.damaged_here = true;
                ReadError::Unavailable(why)
            }
            Err(ReadError::Damaged(why)) if round.node().is_some() => ReadError::Unavailable(why),
            Err(why @ ReadError::Unavailable(_)) => why,
            page => return Ok(vec![(0, Attempt::Done(page))]),
        };
        self.last = last;
        Ok(vec![(0, Attempt::Elsewhere(()))])
    }
}

impl PageCall<'_> {
    fn is_alone(&self) -> bool {
        self.registry.cluster.group(self.group).is_some_and(|group| group.is_alone())
    }

    async fn fetch_there(&self, node: NodeId) -> Result<FetchPage, ReadError> {
        let message = ReadMessage { home: &self.home, reading: &self.reading };
        let page = self.registry.cluster.send_about(node, &[self.group], self.asker, &message, FETCH_MAX).await;
        page.unwrap_or_else(|why| Err(ReadError::Unavailable(why.to_string())))
    }
}

async fn fetch_here(
    registry: &ObjectRegistry,
    readers: &Readers,
    home: RowHome,
    reading: Reading,
) -> Result<FetchPage, ReadError> {
    let cluster = &registry.cluster;
    let shard = cluster.locate(&home.object);
    let view = async |version, stale| cluster.view(shard, version, (registry.clock)(), stale).await.map_err(no_view);
    let page = match reading {
        Reading::Page(request) => {
            let stale = request.stale;
            let query = page_query(&home.object, request)?;
            let view = view(query.version, stale).await?;
            readers.run(move || page(&view, &home, &query)).await?
        }
        Reading::Rows(request) => {
            let view = view(request.version, false).await?;
            readers.run(move || rows(&view, &home, &request)).await?
        }
        Reading::Past(request) => {
            let view = view(request.version, false).await?;
            readers.run(move || past(&view, &home, &request)).await?
        }
    };
    if matches!(page, Err(ReadError::Damaged(_))) {
        cluster.suspect(shard);
    }
    page
}

fn no_view(why: ViewError) -> ReadError {
    match why {
        ViewError::Future { .. } => ReadError::BadRequest(why.to_string()),
        ViewError::Busy(why) => ReadError::Busy { why, retry_after: RETRY_AFTER },
        ViewError::NoSpace(why) => ReadError::NoSpace(why),
        ViewError::Unavailable { .. } => ReadError::Unavailable(why.to_string()),
    }
}

/// Head of an encoded page.
#[derive(Serialize, Deserialize)]
struct PageHead {
    cursor: Option<String>,
    version: Xact,
}

/// Encodes a page: the head or the error as JSON, then each row after its length.
fn pack(page: Result<FetchPage, ReadError>) -> Bytes {
    let (head, events) = match page {
        Ok(FetchPage { events, cursor, version }) => (Ok(PageHead { cursor, version }), events),
        Err(why) => (Err(why), Vec::new()),
    };
    let head = serde_json::to_vec(&head).expect("plain data encodes");
    encode_frames(std::iter::once(&head[..]).chain(events.iter().map(|event| &event[..])))
}

fn unpack(packed: Bytes) -> Option<Result<FetchPage, ReadError>> {
    let mut parts = decode_frames(packed, usize::MAX)?.into_iter();
    let head: Result<PageHead, ReadError> = serde_json::from_slice(&parts.next()?).ok()?;
    Some(head.map(|PageHead { cursor, version }| FetchPage { events: parts.collect(), cursor, version }))
}

/// Service that reads for nodes without a replica of the shard.
pub(crate) struct ReadService {
    pub service: ServiceNames,
    pub registry: Arc<ObjectRegistry>,
    pub readers: Arc<Readers>,
}

impl std::fmt::Debug for ReadService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadService")
    }
}

impl DelegatedService for ReadService {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        _from: NodeId,
        body: Bytes,
        _within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let (service, registry, readers) = (self.service, Arc::clone(&self.registry), Arc::clone(&self.readers));
        async move {
            let bad = |_| NoAnswer::Refused("the request for a page cannot be decoded".into());
            let (home, reading) = Reading::parse(service, &body).map_err(bad)?;
            let group = GroupId::of_shard(registry.cluster.locate(&home.object));
            if !registry.cluster.has_data(group) {
                return Err(registry.cluster.not_leader(group));
            }
            registry.cluster.check(principal, ObjectAccess::Read, vec![home.object]).await?;
            Ok(pack(fetch_here(&registry, &readers, home, reading).await))
        }
        .boxed()
    }
}

/// Reads a page of traces.
pub fn page(view: &View, home: &RowHome, asked: &PageQuery) -> Result<FetchPage, ReadError> {
    let object = &home.object;
    let at = asked.version.unwrap_or_else(|| view.version());
    let explain = |why| explain(object, why);
    let mut before = start_of(view, object, at, &asked.start).map_err(explain)?;
    let (fields, mut progress) = (object_fields(home), Progress::new(asked.limit));
    let mut events = Vec::new();
    let mut next = None;
    while let Some(traces) = progress.next() {
        let found = view.traces(object, at, before, traces).map_err(explain)?;
        let bytes = render(view, home, at, &fields, &found.traces, &mut events)?;
        progress.read(found.traces.len(), bytes);
        (next, before) = (found.next, found.next);
        if next.is_none() {
            break;
        }
    }
    let cursor = next.map(|before| Cursor { version: at, before }.to_text(object));
    Ok(FetchPage { events, cursor, version: at })
}

/// Reads the existing rows of these ids. The cursor is the index of the first id that did not fit into the page.
pub fn rows(view: &View, home: &RowHome, asked: &RowsRequest) -> Result<FetchPage, ReadError> {
    let object = &home.object;
    let at = asked.version.unwrap_or_else(|| view.version());
    let explain = |why| explain(object, why);
    view.page(object, at, None, 0).map_err(explain)?;
    let ids: Vec<&str> = asked.ids.iter().map(String::as_str).collect();
    let notes = view.notes(object, &ids, at).map_err(explain)?;
    let (fields, mut events, mut bytes) = (object_fields(home), Vec::new(), 0);
    for (place, id) in asked.ids.iter().enumerate() {
        if bytes >= PAGE_BYTES_MAX {
            return Ok(FetchPage { events, cursor: Some(place.to_string()), version: at });
        }
        if let Some(row) = view.get(object, id, at).map_err(explain)? {
            let rendered = event(object.kind, &fields, &row, notes.get(id.as_str()))
                .map_err(|why| ReadError::Internal(format!("row {id} of {object}: {why}")))?;
            bytes += rendered.len();
            events.push(rendered);
        }
    }
    Ok(FetchPage { events, cursor: None, version: at })
}

fn start_of(view: &View, object: &ObjectKey, at: Xact, start: &Start) -> Result<Option<PaginationKey>, ShardError> {
    match start {
        Start::Newest => {
            // A read of no rows reports a version that cannot be read.
            view.page(object, at, None, 0).map(|_| None)
        }
        Start::Before(key) => view.page(object, at, None, 0).map(|_| Some(*key)),
        Start::After { root_span_id, otherwise } => {
            let spans = view.trace(object, root_span_id, at)?;
            Ok(Some(spans.first().map_or(*otherwise, |newest| newest.key)))
        }
    }
}

/// Appends the rows of these traces and returns their size.
fn render(
    view: &View,
    home: &RowHome,
    at: Xact,
    fields: &str,
    traces: &[Trace],
    events: &mut Vec<Bytes>,
) -> Result<usize, ReadError> {
    let object = &home.object;
    let rows = || traces.iter().flat_map(|trace| &trace.rows);
    let ids: Vec<&str> = rows().map(|row| row.id.as_str()).collect();
    let notes = view.notes(object, &ids, at).map_err(|why| explain(object, why))?;
    let mut bytes = 0;
    events.reserve(ids.len());
    for row in rows() {
        let rendered = event(object.kind, fields, row, notes.get(row.id.as_str()))
            .map_err(|why| ReadError::Internal(format!("row {} of {object}: {why}", row.id)))?;
        bytes += rendered.len();
        events.push(rendered);
    }
    Ok(bytes)
}

pub(crate) fn explain(object: &ObjectKey, why: ShardError) -> ReadError {
    match why {
        ShardError::ObjectGone => ReadError::Gone { object: *object },
        ShardError::Past { asked, floor } => ReadError::Past { asked, floor },
        ShardError::NotYet { .. } => ReadError::Unavailable(why.to_string()),
        other => ReadError::Damaged(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    fn object() -> ObjectKey {
        ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(2))
    }

    fn start(request: FetchRequest) -> Result<(Option<Xact>, Start), ReadError> {
        page_query(&object(), request).map(|query| (query.version, query.start))
    }

    #[test]
    fn a_request_says_where_to_start() {
        let base = FetchRequest::default();
        assert_eq!(start(base.clone()), Ok((None, Start::Newest)));
        let cursor = Cursor { version: Xact::new(1, 1), before: PaginationKey(7) };
        let paged = FetchRequest { cursor: Some(cursor.to_text(&object())), ..base.clone() };
        assert_eq!(start(paged.clone()), Ok((Some(cursor.version), Start::Before(cursor.before))));
        assert!(start(FetchRequest { version: Some(cursor.version), ..paged.clone() }).is_ok());
        assert!(start(FetchRequest { version: Some(Xact::ZERO), ..paged }).is_err());
        assert_eq!(start(FetchRequest { cursor: Some(String::new()), ..base.clone() }), Ok((None, Start::Newest)));
        assert!(start(FetchRequest { cursor: Some("abc".into()), ..base.clone() }).is_err());

        let max = FetchRequest { max_xact_id: Some(Xact::new(5, 0)), ..base.clone() };
        let key = before_of(Xact::new(5, 0));
        assert_eq!(start(max.clone()), Ok((None, Start::Before(key))));
        let pair = FetchRequest { max_root_span_id: Some("r".into()), ..max };
        assert_eq!(start(pair), Ok((None, Start::After { root_span_id: "r".into(), otherwise: key })));
        assert!(start(FetchRequest { max_root_span_id: Some("r".into()), ..base }).is_err());
    }
}
