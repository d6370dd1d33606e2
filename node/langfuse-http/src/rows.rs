//! Reads and writes of rows of the call's project, with the rights of the caller.

use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_langfuse::{NumberedPage, RowFilter};
use assay_node_objects::WriteError;
use assay_node_query_http::{QueryOptions, RowsPage, rows_of, rows_page};
use assay_node_rows_http::files::Attachments;
use assay_node_rows_http::rows::{send, write_to};
use assay_storage_model::ObjectKind;
use assay_storage_model::event::SentItem;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Upper bound of the bytes of the rows of one read.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the rows of one read.
pub(crate) const ROWS_MAX: u64 = 10_000;
/// Upper bound of the rows in one write.
const ROWS_AT_ONCE: usize = 1_000;
/// Source of the rows of a project's log.
pub(crate) const LOGS: &str = "project_logs";
/// Control fields of a write, which are no part of a row.
const DELETED: &str = "_object_delete";

/// Returns the rows of a query, up to its limit.
pub(crate) async fn read(caller: &Caller, query: Value) -> Result<Vec<Value>, Refusal> {
    rows_of(caller, query, &QueryOptions::newest(ROWS_BYTES_MAX)).await
}

/// Returns all rows, or refuses the request if there are more than one read may have.
pub(crate) async fn read_all(
    caller: &Caller,
    filter: &RowFilter,
    source: &str,
    objects: &[Uuid],
) -> Result<Vec<Value>, Refusal> {
    let rows = read(caller, filter.rows(source, objects, ROWS_MAX)).await?;
    match rows.len() as u64 >= ROWS_MAX {
        true => Err(Refusal::new(
            ErrorKind::TooLarge,
            format!("the request concerns {ROWS_MAX} rows or more: use the query language of this server for them"),
        )),
        false => Ok(rows),
    }
}

/// Returns the rows of a page, newest first, and the number of all rows.
pub(crate) async fn page_of(
    caller: &Caller,
    filter: &RowFilter,
    (source, objects): (&str, &[Uuid]),
    page: NumberedPage,
) -> Result<(Vec<Value>, u64), Refusal> {
    let count = read(caller, filter.count(source, objects)).await?;
    let total = count.first().and_then(|row| row["n"].as_u64()).unwrap_or_default();
    if total == 0 {
        return Ok((Vec::new(), 0));
    }
    let ids = read(caller, filter.ids(source, objects, page.end())).await?;
    let ids: Vec<String> = page.of_items(ids).iter().filter_map(|row| row["id"].as_str()).map(str::to_owned).collect();
    Ok((by_ids(caller, (source, objects), &ids).await?, total))
}

/// Returns rows by their ids, in the order of the ids.
pub(crate) async fn by_ids(
    caller: &Caller,
    (source, objects): (&str, &[Uuid]),
    ids: &[String],
) -> Result<Vec<Value>, Refusal> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = read(caller, RowFilter::of_ids(ids).rows(source, objects, ids.len() as u64)).await?;
    let mut by_id: Map<String, Value> =
        rows.into_iter().filter_map(|row| Some((row["id"].as_str()?.to_owned(), row))).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}

/// Returns a page of rows after a cursor, in the order of the store.
pub(crate) async fn page_after(
    caller: &Caller,
    filter: &RowFilter,
    project: Uuid,
    (limit, cursor): (u64, Option<String>),
) -> Result<RowsPage, Refusal> {
    let options = QueryOptions { cursor, ..QueryOptions::newest(ROWS_BYTES_MAX) };
    let mut page = rows_page(caller, filter.rows(LOGS, &[project], limit), &options).await?;
    if (page.rows.len() as u64) < limit {
        page.cursor = None;
    }
    Ok(page)
}

/// Writes rows of an object in parts, in their order.
pub(crate) async fn write(caller: &Caller, kind: ObjectKind, id: Uuid, rows: Vec<Value>) -> Result<(), Refusal> {
    write_each(caller, kind, id, rows).await.map_err(Refusal::from)
}

/// Writes rows like [`write`]. The error of an invalid row has its position among all rows.
pub(crate) async fn write_each(caller: &Caller, kind: ObjectKind, id: Uuid, rows: Vec<Value>) -> Result<(), RowsError> {
    let mut rows = rows.into_iter().map(SentItem::from).peekable();
    let mut before = 0;
    while rows.peek().is_some() {
        let part: Vec<SentItem> = rows.by_ref().take(ROWS_AT_ONCE).collect();
        let count = part.len();
        let write = write_to(caller, kind, id, (part, Attachments::Unknown), None).await.map_err(RowsError::Whole)?;
        send(caller, vec![write]).await.map_err(|error| match error {
            WriteError::Row { error, .. } => RowsError::Row { row: before + error.row, why: error.to_string() },
            other => RowsError::Whole(other.into()),
        })?;
        before += count;
    }
    Ok(())
}

/// Error of a write of rows.
pub(crate) enum RowsError {
    /// The row at a position is invalid.
    Row {
        row: usize,
        why: String,
    },
    Whole(Refusal),
}

impl From<RowsError> for Refusal {
    fn from(error: RowsError) -> Refusal {
        match error {
            RowsError::Row { why, .. } => Refusal::bad(why),
            RowsError::Whole(refusal) => refusal,
        }
    }
}

/// Returns the row that deletes another.
pub(crate) fn deletion(id: &Value) -> Value {
    Value::Object(Map::from_iter([("id".to_owned(), id.clone()), (DELETED.to_owned(), true.into())]))
}
