//! Preparation of a client's rows before a write: validation, merging of rows with the same id, and size.

use assay_storage_model::command::{
    Action, Command, ConditionalWrite, ExpectedRow, ROWS_PER_WRITE_MAX, RequestId, RowOp, TooLarge, Write,
};
use assay_storage_model::event::{PrepareContext, PreparedRow, SentItem, prepare};
use assay_storage_model::merge::fold_batch;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_threads::{BackgroundWork, lower_thread_priority};
use bytes::Bytes;
use uuid::{Builder, Uuid};

use crate::{ObjectWrite, WriteError};

/// Size up to which documents are prepared on the caller's thread. That takes about a tenth of a millisecond.
const PREPARED_HERE_BYTES_MAX: usize = 32 << 10;
/// Bytes that a row counts for in addition to its document.
const ROW_BYTES: usize = 256;
/// Upper bound of the rows of one write before rows are merged. It is twice the limit of a command, since rows may
/// merge and an item of feedback creates two. Each row takes about a kilobyte of memory.
const SENT_ROWS_MAX: usize = 2 * ROWS_PER_WRITE_MAX;

/// Write that lacks only its id.
#[derive(Debug)]
pub struct Prepared {
    pub object: ObjectKey,
    pub request: Option<RequestId>,
    pub rows: Vec<PreparedRow>,
    /// Versions that rows need to have before the write.
    pub expected: Vec<ExpectedRow>,
    /// Upper bound of the bytes of its command.
    pub bytes: usize,
}

impl Prepared {
    /// Returns the ids of rows that merges will be folded into.
    pub fn merged(&self) -> Vec<&str> {
        self.rows.iter().filter(|row| row.action == Action::Merge).map(|row| row.id.as_str()).collect()
    }

    pub fn has_merges(&self) -> bool {
        self.rows.iter().any(|row| row.action == Action::Merge)
    }

    /// Returns the encoded command.
    pub fn command(&self, assigned: Xact) -> Bytes {
        Bytes::from(self.unencoded(assigned).encode())
    }

    /// Returns the size of the command, if it is within the limits.
    pub(crate) fn checked_bytes(&self) -> Result<usize, TooLarge> {
        let command = self.unencoded(Xact::ZERO);
        command.check_limits()?;
        Ok(command.bytes_about())
    }

    fn unencoded(&self, assigned: Xact) -> Command<'_> {
        let rows: Vec<RowOp<'_>> = self.rows.iter().map(PreparedRow::as_op).collect();
        let write = Write { object: self.object, assigned, request: self.request, rows };
        match self.expected.is_empty() {
            true => Command::Write(write),
            false => Command::ConditionalWrite(ConditionalWrite { write, expected: self.expected.clone() }),
        }
    }
}

/// Write that lacks only its id, and the ids of its rows in the order of the request.
type PreparedWrite = (Prepared, Vec<String>);

/// Prepares writes. Returns each one with the ids of its rows in the order of the request.
///
/// Large writes are prepared on another thread, since the caller's thread may have to serve small ones of others.
pub async fn prepare_all(writes: Vec<ObjectWrite>, now_micros: i64) -> Result<Vec<PreparedWrite>, WriteError> {
    let rows = writes.iter().flat_map(|write| &write.rows);
    let bytes: usize = rows.map(|row| ROW_BYTES + row.bytes_about()).sum();
    if bytes <= PREPARED_HERE_BYTES_MAX {
        return each_prepared(writes, now_micros);
    }
    let preparing = tokio::task::spawn_blocking(move || {
        lower_thread_priority(BackgroundWork::Bulk);
        each_prepared(writes, now_micros)
    });
    preparing.await.unwrap_or_else(|why| Err(WriteError::unavailable(format!("cannot prepare rows: {why}"))))
}

fn each_prepared(writes: Vec<ObjectWrite>, now_micros: i64) -> Result<Vec<PreparedWrite>, WriteError> {
    let mut prepared = Vec::with_capacity(writes.len());
    for (place, ObjectWrite { object, rows, request }) in writes.into_iter().enumerate() {
        let refuse = |error| WriteError::Row { write: place, error };
        let too_large = |why: TooLarge| WriteError::TooLarge { write: place, why: why.to_string() };
        if rows.len() > SENT_ROWS_MAX {
            return Err(too_large(TooLarge::Rows(rows.len())));
        }
        let mut ready: Vec<PreparedRow> = Vec::with_capacity(rows.len());
        let mut row_ids = Vec::with_capacity(rows.len());
        let mut new = NewIds { request, made: 0 };
        for (index, row) in rows.into_iter().enumerate() {
            let mut row = one(object, index, row, now_micros, &mut new).map_err(refuse)?;
            row_ids.push(std::mem::take(&mut row.row_id));
            ready.push(row);
        }
        let rows = fold_batch(ready).map_err(refuse)?;
        let mut write = Prepared { object, request, rows, expected: Vec::new(), bytes: 0 };
        write.bytes = write.checked_bytes().map_err(too_large)?;
        prepared.push((write, row_ids));
    }
    Ok(prepared)
}

fn one(
    object: ObjectKey,
    index: usize,
    row: SentItem,
    now_micros: i64,
    new: &mut NewIds,
) -> Result<PreparedRow, assay_storage_model::event::RowError> {
    prepare(object.kind, index, row, &mut PrepareContext { now_micros, new_id: &mut || new.next() })
}

/// Generator of ids for rows without an id. A request with an idempotency key always gets the same ids.
struct NewIds {
    request: Option<RequestId>,
    made: u64,
}

impl NewIds {
    fn next(&mut self) -> String {
        self.made += 1;
        let Some(request) = self.request else {
            return Uuid::new_v4().to_string();
        };
        // Key and content are hashes. The number is spread so that it does not interfere with their structure.
        let spread = u128::from(self.made).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let mixed = u128::from_be_bytes(request.key) ^ u128::from_be_bytes(request.content).rotate_left(64) ^ spread;
        Builder::from_random_bytes(mixed.to_be_bytes()).into_uuid().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_storage_model::{ObjectKind, OrgId};
    use serde_json::{Value, json};

    fn object() -> ObjectKey {
        ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(2))
    }

    async fn prepared(request: Option<RequestId>, rows: Vec<Value>) -> Result<(Prepared, Vec<String>), WriteError> {
        let write = ObjectWrite { object: object(), rows: rows.into_iter().map(SentItem::from).collect(), request };
        Ok(prepare_all(vec![write], 0).await?.pop().expect("one"))
    }

    #[tokio::test]
    async fn row_ids_are_those_of_the_rows_as_sent_however_they_fold() {
        let rows = vec![
            json!({"id": "a", "input": 1}),
            json!({"id": "b"}),
            json!({"id": "a", "output": 2, "_is_merge": true}),
            json!({"id": "c", "origin": {"id": "a"}, "comment": {"text": "x"}}),
        ];
        let (write, row_ids) = prepared(None, rows).await.expect("prepares");
        assert_eq!(row_ids, ["a", "b", "a", "c"]);
        assert_eq!(write.rows.len(), 3);
        assert!(!write.has_merges(), "the merge is folded into the row before it");
        assert!(write.bytes >= write.command(Xact::ZERO).len());
    }

    #[tokio::test]
    async fn a_request_with_a_key_makes_the_same_ids_again_and_another_makes_others() {
        let rows = || vec![json!({"input": 1}), json!({"input": 2})];
        let request = |key| Some(RequestId { key: [key; 16], content: [7; 16] });
        let (first, again) =
            (prepared(request(1), rows()).await.expect("prepares").1, prepared(request(1), rows()).await);
        assert_eq!(first, again.expect("prepares").1);
        assert_ne!(first[0], first[1]);
        assert!(first.iter().all(|id| Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 4)));
        assert_ne!(first, prepared(request(2), rows()).await.expect("prepares").1);
        assert_ne!(
            prepared(None, rows()).await.expect("prepares").1,
            prepared(None, rows()).await.expect("prepares").1
        );
    }

    #[tokio::test]
    async fn a_bad_row_is_named_by_its_write_and_its_place() {
        let good = ObjectWrite { object: object(), rows: vec![json!({"id": "a"}).into()], request: None };
        let bad =
            ObjectWrite { rows: vec![json!({"id": "a"}).into(), json!({"scores": {"s": 3}}).into()], ..good.clone() };
        let Err(WriteError::Row { write, error }) = prepare_all(vec![good, bad], 0).await.map(drop) else {
            panic!("is refused");
        };
        assert_eq!((write, error.row, error.path.as_str()), (1, 1, "scores.s"));
    }

    #[tokio::test]
    async fn more_rows_than_a_write_holds_are_refused() {
        let rows = (0..=ROWS_PER_WRITE_MAX).map(|n| json!({"id": n.to_string()}));
        assert!(matches!(prepared(None, rows.collect()).await, Err(WriteError::TooLarge { write: 0, .. })));
    }

    #[tokio::test]
    async fn far_too_many_rows_are_refused_before_any_is_looked_at() {
        let rows = vec![json!({"id": 1}); SENT_ROWS_MAX + 1];
        let refused = prepared(None, rows).await.map(drop);
        let why = "a write of 20001 rows: at most 10000 fit; send the rest in another request".into();
        assert_eq!(refused, Err(WriteError::TooLarge { write: 0, why }));
    }
}
