//! Reading pages: the fence, the version, the walk over traces, each on the thread where it may wait.

use std::sync::Arc;

use assay_cluster::{Cluster, NotWritten, ProposeError};
use assay_storage_model::command::Command;
use assay_storage_model::{GroupId, ObjectKey, PaginationKey, Xact};
use assay_storage_shard::{Shard, ShardError, Trace, View};
use bytes::Bytes;

use crate::answer::RETRY_AFTER;
use crate::page::{Cursor, Progress, before_of};
use crate::readers::Readers;
use crate::render::{event, object_fields};
use crate::{FetchPage, FetchRequest, ReadError, RowHome};

/// A version may lie this far ahead of the clock; the shard's ids then start above it.
const AHEAD_SECONDS_MAX: u64 = 10;

/// Where a page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    Newest,
    Before(PaginationKey),
    /// After this trace, or if it is not there, before the key.
    After {
        root_span_id: String,
        otherwise: PaginationKey,
    },
}

/// What a request says, before anything was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub version: Option<Xact>,
    pub start: Start,
    pub limit: Option<u64>,
}

pub fn asked(object: &ObjectKey, request: FetchRequest) -> Result<Asked, ReadError> {
    let refuse = |why: &str| Err(ReadError::BadRequest(why.to_owned()));
    let FetchRequest { limit, cursor, version, max_xact_id, max_root_span_id } = request;
    if let Some(text) = cursor.filter(|text| !text.is_empty()) {
        let Some(cursor) = Cursor::parse(&text, object) else {
            return refuse("Invalid cursor: pass the one of the page before, of the same object");
        };
        if version.is_some_and(|version| version != cursor.version) {
            return refuse("`version` is not the one of the page that the cursor comes from");
        }
        return Ok(Asked { version: Some(cursor.version), start: Start::Before(cursor.before), limit });
    }
    let start = match (max_xact_id, max_root_span_id.filter(|root| !root.is_empty())) {
        (None, None) => Start::Newest,
        (Some(max), None) => Start::Before(before_of(max)),
        (Some(max), Some(root_span_id)) => Start::After { root_span_id, otherwise: before_of(max) },
        (None, Some(_)) => return refuse("`max_root_span_id` needs `max_xact_id` beside it"),
    };
    Ok(Asked { version, start, limit })
}

pub(crate) async fn fetch(
    cluster: &Arc<Cluster>,
    readers: &Readers,
    now_micros: i64,
    home: RowHome,
    request: FetchRequest,
) -> Result<FetchPage, ReadError> {
    let asked = asked(&home.object, request)?;
    let shard_id = cluster.locate(&home.object);
    let unavailable = |why: String| ReadError::Unavailable(why);
    let shard = cluster.shard(shard_id).ok_or_else(|| unavailable(format!("shard {shard_id} is not here")))?;
    cluster.fence(GroupId::of_shard(shard_id)).await.map_err(|why| unavailable(why.to_string()))?;
    let view = match asked.version {
        Some(version) if version > shard.last() => {
            advance(cluster, &shard, &home.object, version, now_micros).await?;
            shard.view()
        }
        _ => shard.view(),
    };
    readers.run(move || page(&view, &home, &asked)).await?
}

/// Makes every later write of the shard get an id above `to`, so that the answer for it can never change.
async fn advance(
    cluster: &Arc<Cluster>,
    shard: &Shard,
    object: &ObjectKey,
    to: Xact,
    now_micros: i64,
) -> Result<(), ReadError> {
    let now_seconds = u64::try_from(now_micros).unwrap_or(0) / 1_000_000;
    if u64::from(to.seconds()) > now_seconds + AHEAD_SECONDS_MAX || to > Xact::MAX {
        let last = shard.last();
        return Err(ReadError::BadRequest(format!("version {to} lies in the future; the last one here is {last}")));
    }
    let command = Bytes::from(Command::Advance { to }.encode());
    match cluster.write(cluster.locate(object), command).await {
        Ok(_) => Ok(()),
        Err(ProposeError::NotWritten(NotWritten::Busy(why))) => {
            Err(ReadError::Busy { why: why.to_owned(), retry_after: RETRY_AFTER })
        }
        Err(ProposeError::NotWritten(NotWritten::NoSpace(why))) => Err(ReadError::NoSpace(why)),
        Err(why) => Err(ReadError::Unavailable(why.to_string())),
    }
}

pub fn page(view: &View, home: &RowHome, asked: &Asked) -> Result<FetchPage, ReadError> {
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

fn start_of(view: &View, object: &ObjectKey, at: Xact, start: &Start) -> Result<Option<PaginationKey>, ShardError> {
    match start {
        Start::Newest => {
            // Asked for nothing, a refusal of the version still has to show.
            view.page(object, at, None, 0).map(|_| None)
        }
        Start::Before(key) => view.page(object, at, None, 0).map(|_| Some(*key)),
        Start::After { root_span_id, otherwise } => {
            let spans = view.trace(object, root_span_id, at)?;
            Ok(Some(spans.first().map_or(*otherwise, |newest| newest.key)))
        }
    }
}

/// Appends the rows of these traces; answers their bytes.
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

fn explain(object: &ObjectKey, why: ShardError) -> ReadError {
    match why {
        ShardError::ObjectGone => ReadError::Gone { object: *object },
        ShardError::Past { asked, floor } => ReadError::Past { asked, floor },
        ShardError::NotYet { .. } => ReadError::Unavailable(why.to_string()),
        other => ReadError::Internal(other.to_string()),
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
        asked(&object(), request).map(|asked| (asked.version, asked.start))
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
