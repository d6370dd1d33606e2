//! Batches of spans, which let concurrent calls share one write and its sync to disk.
//!
//! A row is written at once if its writer is idle. Rows that arrive during a write form the next batch.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

/// Upper bound of the rows in one write.
const BATCH_ROWS_MAX: usize = 256;
/// Upper bound of the bytes in one write, unless a single row is larger.
const BATCH_BYTES_MAX: usize = 2 << 20;

/// Reason why rows were not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanFailure {
    pub kind: ErrorKind,
    pub message: String,
}

impl SpanFailure {
    /// Returns whether a retry may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::NoSpace)
    }

    fn interrupted() -> SpanFailure {
        SpanFailure { kind: ErrorKind::Unavailable, message: "the write of a batch was interrupted".to_owned() }
    }
}

impl From<Refusal> for SpanFailure {
    fn from(refusal: Refusal) -> SpanFailure {
        SpanFailure { kind: refusal.kind, message: refusal.message }
    }
}

type Written = Result<(), SpanFailure>;

/// Function that writes all rows or none.
pub type WriteRows = Arc<dyn Fn(Vec<Value>) -> BoxFuture<'static, Written> + Send + Sync>;

#[derive(Debug)]
struct WaitingRow {
    row: Value,
    bytes: usize,
    written: oneshot::Sender<Written>,
}

/// Waiting rows of each active writer.
type WritersAtWork<K> = Mutex<HashMap<K, VecDeque<WaitingRow>>>;

/// Queue of rows for each writer, such as a principal in one object. Clones share the queues.
#[derive(Clone, Debug)]
pub struct SpanBatches<K>(Arc<WritersAtWork<K>>);

impl<K> Default for SpanBatches<K> {
    fn default() -> SpanBatches<K> {
        SpanBatches(Arc::default())
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> SpanBatches<K> {
    /// Writes a row, alone or in a batch with other rows of the writer.
    pub async fn write(&self, writer: K, row: Value, write: WriteRows) -> Written {
        let (written, outcome) = oneshot::channel();
        let waiting = WaitingRow { bytes: text_bytes(&row), row, written };
        if let Some(mut turn) = self.join(writer, waiting) {
            if let Some(first) = turn.next_batch() {
                write_batch(first, &write).await;
            }
            if let Some(batch) = turn.next_batch() {
                tokio::spawn(turn.write_from(batch, write));
            }
        }
        // The channel closes without an outcome if the write panicked.
        outcome.await.unwrap_or_else(|_| Err(SpanFailure::interrupted()))
    }

    /// Queues a row. Returns the turn of the writer if it was idle.
    fn join(&self, writer: K, row: WaitingRow) -> Option<WriterTurn<K>> {
        let mut at_work = self.0.lock();
        match at_work.get_mut(&writer) {
            Some(rows) => {
                rows.push_back(row);
                None
            }
            None => {
                at_work.insert(writer.clone(), VecDeque::from([row]));
                Some(WriterTurn { at_work: Arc::clone(&self.0), writer, is_over: false })
            }
        }
    }
}

/// Turn of a writer, which lasts while rows wait.
struct WriterTurn<K: Eq + Hash> {
    at_work: Arc<WritersAtWork<K>>,
    writer: K,
    is_over: bool,
}

impl<K: Eq + Hash> WriterTurn<K> {
    /// Takes the rows of the next write. Ends the turn if no rows wait.
    fn next_batch(&mut self) -> Option<Vec<WaitingRow>> {
        let mut at_work = self.at_work.lock();
        let batch = at_work.get_mut(&self.writer).map(take_batch).filter(|batch| !batch.is_empty());
        if batch.is_none() {
            at_work.remove(&self.writer);
            self.is_over = true;
        }
        batch
    }

    async fn write_from(mut self, first: Vec<WaitingRow>, write: WriteRows) {
        let mut next = Some(first);
        while let Some(batch) = next {
            write_batch(batch, &write).await;
            next = self.next_batch();
        }
    }
}

impl<K: Eq + Hash> Drop for WriterTurn<K> {
    /// Ends a turn whose write panicked, so that waiting rows fail instead of hanging.
    fn drop(&mut self) {
        if !self.is_over {
            self.at_work.lock().remove(&self.writer);
        }
    }
}

/// Takes rows from the front within the bounds of one write.
fn take_batch(rows: &mut VecDeque<WaitingRow>) -> Vec<WaitingRow> {
    let mut bytes = 0_usize;
    let fits = |row: &&WaitingRow| {
        bytes = bytes.saturating_add(row.bytes);
        bytes <= BATCH_BYTES_MAX
    };
    let count = rows.iter().take(BATCH_ROWS_MAX).take_while(fits).count();
    rows.drain(..count.max(1).min(rows.len())).collect()
}

/// Writes a batch. Writes each row alone if the batch is refused, since a single row may be the reason.
async fn write_batch(batch: Vec<WaitingRow>, write: &WriteRows) {
    let written = write(batch.iter().map(|waiting| waiting.row.clone()).collect()).await;
    let is_refused = written.as_ref().is_err_and(|failure| !failure.may_pass());
    let is_single = batch.len() == 1;
    for WaitingRow { row, written: sender, .. } in batch {
        let outcome = if is_refused && !is_single { write(vec![row]).await } else { written.clone() };
        // The receiver is gone only at shutdown.
        drop(sender.send(outcome));
    }
}

/// Returns the approximate bytes of a row.
fn text_bytes(value: &Value) -> usize {
    const VALUE_BYTES: usize = 8;
    match value {
        Value::String(text) => text.len() + VALUE_BYTES,
        Value::Array(items) => items.iter().map(text_bytes).sum::<usize>() + VALUE_BYTES,
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + text_bytes(value)).sum::<usize>() + VALUE_BYTES
        }
        _ => VALUE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;
    use serde_json::json;
    use tokio::sync::Semaphore;

    use super::*;

    type Writes = Arc<Mutex<Vec<Vec<Value>>>>;

    /// Returns a write that keeps the rows, waits for a permit, and refuses what has a row `"bad"`.
    fn scripted(permits: &Arc<Semaphore>) -> (WriteRows, Writes) {
        let (writes, permits) = (Writes::default(), Arc::clone(permits));
        let kept = Arc::clone(&writes);
        let write: WriteRows = Arc::new(move |rows: Vec<Value>| {
            kept.lock().push(rows.clone());
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.expect("open").forget();
                let kind = match rows.iter().find_map(Value::as_str) {
                    Some("bad") => ErrorKind::BadRequest,
                    Some("busy") => ErrorKind::Busy,
                    _ => return Ok(()),
                };
                Err(SpanFailure { kind, message: format!("{} rows", rows.len()) })
            }
            .boxed()
        });
        (write, writes)
    }

    /// Writes the first row, and the others while it is being written. Returns what came of the others.
    async fn run(rows: &[Value]) -> (Vec<Written>, Vec<Vec<Value>>) {
        let permits = Arc::new(Semaphore::new(0));
        let (write, writes) = scripted(&permits);
        let batches = SpanBatches::<u8>::default();
        let mut first = batches.write(1, json!(0), Arc::clone(&write)).boxed();
        assert!((&mut first).now_or_never().is_none(), "it waits for its permit");
        let mut others = join_all(rows.iter().map(|row| batches.write(1, row.clone(), Arc::clone(&write)))).boxed();
        assert!((&mut others).now_or_never().is_none(), "they wait for the first");
        permits.add_permits(100);
        assert_eq!(first.await, Ok(()));
        let others = others.await;
        tokio::task::yield_now().await;
        assert!(batches.0.lock().is_empty(), "nobody writes any more");
        let writes = writes.lock().clone();
        (others, writes)
    }

    #[tokio::test]
    async fn rows_that_come_during_a_write_are_written_together() {
        let (written, writes) = run(&[json!(1), json!(2), json!(3)]).await;
        assert_eq!(written, [Ok(()), Ok(()), Ok(())]);
        assert_eq!(writes, [vec![json!(0)], vec![json!(1), json!(2), json!(3)]]);
    }

    #[tokio::test]
    async fn a_refused_row_does_not_keep_others_from_being_written() {
        let (written, writes) = run(&[json!(1), json!("bad"), json!(3)]).await;
        let refused = SpanFailure { kind: ErrorKind::BadRequest, message: "1 rows".into() };
        assert_eq!(written, [Ok(()), Err(refused), Ok(())]);
        let alone = [vec![json!(1)], vec![json!("bad")], vec![json!(3)]];
        assert_eq!(writes[2..], alone);
    }

    #[tokio::test]
    async fn a_batch_that_may_be_written_later_fails_as_a_whole() {
        let (written, writes) = run(&[json!("busy"), json!(2)]).await;
        let busy = Err(SpanFailure { kind: ErrorKind::Busy, message: "2 rows".into() });
        assert_eq!(written, [busy.clone(), busy]);
        assert_eq!(writes.len(), 2);
    }

    #[tokio::test]
    async fn a_batch_has_bounds() {
        let large = json!("x".repeat(BATCH_BYTES_MAX / 2));
        let (_, writes) = run(&[large.clone(), large.clone(), large]).await;
        assert_eq!(writes.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 1]);
        let many = vec![json!(1); BATCH_ROWS_MAX + 1];
        let (_, writes) = run(&many).await;
        assert_eq!(writes.iter().map(Vec::len).collect::<Vec<_>>(), [1, BATCH_ROWS_MAX, 1]);
    }

    #[tokio::test]
    async fn writers_do_not_wait_for_each_other() {
        let permits = Arc::new(Semaphore::new(0));
        let (write, writes) = scripted(&permits);
        let batches = SpanBatches::<u8>::default();
        let both = [1, 2].map(|writer| batches.write(writer, json!(writer), Arc::clone(&write)));
        assert!(join_all(both).now_or_never().is_none());
        assert_eq!(*writes.lock(), [vec![json!(1)], vec![json!(2)]]);
    }
}
