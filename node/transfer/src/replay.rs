//! Replay of one object's operations. Existing operations are compared, and missing ones are written.
//!
//! For versioned kinds, each transaction of the file becomes one local transaction. For other kinds, several whole
//! transactions are written together, because each write costs a flush of the log. The rows keep their order, with all
//! operations on a row.
//!
//! Writes are sequential, so the local operations are always a prefix of those in the file. An interrupted import finds
//! its position by reading both.

use std::time::Duration;

use assay_node_auth::Sha256;
use assay_node_objects::{HistoryOp, HistoryPosition, WriteError};
use assay_storage_model::command::{Action, COMMAND_BYTES_MAX, ROWS_PER_WRITE_MAX, RequestId};
use assay_storage_model::{ObjectKey, Xact};

use crate::error::damaged;
use crate::export::past;
use crate::export::records::is_versioned;
use crate::versions::{VERSIONS_MAX, Versions};
use crate::{TransferContext, TransferError};

/// Number of rows up to which transactions are written together.
const TOGETHER_ROWS: usize = 1000;
const TOGETHER_BYTES: usize = 4 << 20;
/// Upper bound of the size of one write, which leaves space for the rest of the command.
const WRITE_BYTES_MAX: usize = COMMAND_BYTES_MAX - (1 << 20);
/// Upper bound of the attempts of a write that was refused temporarily.
const ATTEMPTS_MAX: u32 = 120;
const SENT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Object that is being imported.
pub(crate) struct Replay<'r> {
    context: &'r TransferContext,
    object: ObjectKey,
    /// Operations of the file that are neither found nor written yet.
    waiting: Vec<HistoryOp>,
    bytes: usize,
    here: Here,
    /// Number of operations that exist locally.
    done: u64,
    pub written: u64,
}

/// Remaining local history of the object.
enum Here {
    /// Next local transaction, with the reader of later ones.
    Some {
        xact: Xact,
        ops: Vec<HistoryOp>,
        later: Pages,
    },
    Nothing,
}

/// Reader of the local transactions of an object.
struct Pages {
    read: std::collections::VecDeque<HistoryOp>,
    next: Option<HistoryPosition>,
    version: Option<Xact>,
}

impl Pages {
    fn transaction(
        &mut self,
        context: &TransferContext,
        object: ObjectKey,
    ) -> Result<Option<(Xact, Vec<HistoryOp>)>, TransferError> {
        let mut ops: Vec<HistoryOp> = Vec::new();
        loop {
            while let Some(op) = self.read.front() {
                if ops.first().is_some_and(|first| first.xact != op.xact) {
                    return Ok(ops.first().map(|first| first.xact).map(|xact| (xact, ops)));
                }
                ops.extend(self.read.pop_front());
            }
            let Some(from) = self.next.take() else {
                return Ok(ops.first().map(|first| first.xact).map(|xact| (xact, ops)));
            };
            let page = past(context, object, from, self.version).map_err(|why| TransferError::Read { object, why })?;
            (self.next, self.version) = (page.next, Some(page.version));
            for line in &page.lines {
                self.read.push_back(HistoryOp::parse(line).map_err(damaged)?);
            }
        }
    }
}

impl Here {
    fn next(mut pages: Pages, context: &TransferContext, object: ObjectKey) -> Result<Here, TransferError> {
        Ok(match pages.transaction(context, object)? {
            Some((xact, ops)) => Here::Some { xact, ops, later: pages },
            None => Here::Nothing,
        })
    }
}

impl<'r> Replay<'r> {
    pub fn start(context: &'r TransferContext, object: ObjectKey) -> Result<Replay<'r>, TransferError> {
        let pages = Pages { read: Default::default(), next: Some(HistoryPosition::default()), version: None };
        let here = Here::next(pages, context, object)?;
        Ok(Replay { context, object, waiting: Vec::new(), bytes: 0, here, done: 0, written: 0 })
    }

    /// Starts an object whose operations are written without a comparison with those that exist.
    pub fn anew(context: &'r TransferContext, object: ObjectKey) -> Replay<'r> {
        Replay { context, object, waiting: Vec::new(), bytes: 0, here: Here::Nothing, done: 0, written: 0 }
    }

    /// Adds the next operation of the file.
    pub fn operation(&mut self, text: &[u8], versions: &mut Versions) -> Result<(), TransferError> {
        let mut op = HistoryOp::parse(text).map_err(damaged)?;
        if matches!(op.row.action, Action::Upsert | Action::Merge) {
            versions.in_document(self.object.org, &mut op.row.doc);
        }
        if self.waiting.last().is_some_and(|last| last.xact > op.xact) {
            return Err(damaged("operations are not in the order of their transactions"));
        }
        if self.is_full(&op) {
            self.write(versions)?;
        }
        self.bytes += op.bytes();
        self.waiting.push(op);
        self.compare(versions)
    }

    /// Finishes the object after its last operation.
    pub fn end(mut self, versions: &mut Versions) -> Result<u64, TransferError> {
        if matches!(self.here, Here::Some { .. }) && !self.waiting.is_empty() {
            return Err(TransferError::Differs(self.object));
        }
        self.write(versions)?;
        Ok(self.written)
    }

    /// Returns whether the waiting operations must be written before the next one is added.
    fn is_full(&self, next: &HistoryOp) -> bool {
        let Some(last) = self.waiting.last() else { return false };
        if matches!(self.here, Here::Some { .. }) {
            return false; // how much belongs together is seen from what is here
        }
        let (rows, bytes) = (self.waiting.len(), self.bytes);
        if last.xact == next.xact {
            // Only transactions of unversioned kinds may be split between writes.
            return !is_versioned(self.object.kind)
                && (rows == ROWS_PER_WRITE_MAX || bytes + next.bytes() > WRITE_BYTES_MAX);
        }
        is_versioned(self.object.kind)
            || rows >= TOGETHER_ROWS
            || bytes >= TOGETHER_BYTES
            || bytes + next.bytes() > WRITE_BYTES_MAX
    }

    /// Compares the waiting operations with the next local transaction, once there are enough of them.
    fn compare(&mut self, versions: &mut Versions) -> Result<(), TransferError> {
        let Here::Some { ops, .. } = &self.here else { return Ok(()) };
        if self.waiting.len() < ops.len() {
            return Ok(());
        }
        let Here::Some { xact, ops, later } = std::mem::replace(&mut self.here, Here::Nothing) else { return Ok(()) };
        let there: Vec<HistoryOp> = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        self.done += there.len() as u64;
        let last = there.last().map(|op| op.xact);
        if !is_same(there, ops) {
            return Err(TransferError::Differs(self.object));
        }
        self.arrived(last, xact, versions)?;
        self.here = Here::next(later, self.context, self.object)?;
        Ok(())
    }

    fn write(&mut self, versions: &mut Versions) -> Result<(), TransferError> {
        let ops = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        let Some(there) = ops.last().map(|op| op.xact) else { return Ok(()) };
        let count = ops.len() as u64;
        match self.send(&ops) {
            Ok(here) => {
                self.done += count;
                self.arrived(Some(there), here, versions)?;
            }
            // A merge of several transactions may be too expensive, so they are written separately.
            Err(WriteError::Row { .. }) if ops.first().is_some_and(|first| first.xact != there) => {
                for transaction in ops.chunk_by(|a, b| a.xact == b.xact) {
                    let here = self.send(transaction).map_err(|why| self.refused(why))?;
                    self.done += transaction.len() as u64;
                    self.arrived(transaction.last().map(|op| op.xact), here, versions)?;
                }
            }
            Err(why) => return Err(self.refused(why)),
        }
        self.written += count;
        Ok(())
    }

    fn refused(&self, why: WriteError) -> TransferError {
        TransferError::Write { object: self.object, why }
    }

    fn arrived(&mut self, there: Option<Xact>, here: Xact, versions: &mut Versions) -> Result<(), TransferError> {
        let fits = match there {
            Some(there) if is_versioned(self.object.kind) => versions.note(self.object, there, here),
            _ => true,
        };
        if fits { Ok(()) } else { Err(TransferError::Versions(VERSIONS_MAX)) }
    }

    fn send(&self, ops: &[HistoryOp]) -> Result<Xact, WriteError> {
        let request = self.request(ops);
        let mut attempts = 0;
        loop {
            let sent = self.context.objects.write_again(self.object, ops.to_vec(), request);
            match self.context.runtime.block_on(sent) {
                Err(why) if why.may_pass() && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                    std::thread::sleep(SENT_AGAIN_AFTER);
                }
                sent => return sent,
            }
        }
    }

    /// Returns a request id that depends only on the write.
    ///
    /// So a repeated write counts once, and two concurrent imports of one file write nothing twice.
    fn request(&self, ops: &[HistoryOp]) -> RequestId {
        let mut key = Sha256::default();
        key.update(b"assay import");
        key.update(&self.object.to_bytes());
        key.update(&ops.first().map_or(Xact::ZERO, |first| first.xact).0.to_be_bytes());
        let mut content = Sha256::default();
        for op in ops {
            let row = &op.row;
            for part in [row.id.as_bytes(), row.span_id.as_bytes(), &row.doc, &row.rules, &row.audit] {
                content.update(&(part.len() as u64).to_be_bytes());
                content.update(part);
            }
        }
        let half = |sum: Sha256| {
            let mut half = [0; 16];
            half.copy_from_slice(&sum.finish()[..16]);
            half
        };
        key.update(&self.done.to_be_bytes());
        RequestId { key: half(key), content: half(content) }
    }
}

/// Returns whether two lists contain the same operations.
///
/// A write stores its operations by row, in another order than the original transactions. The order within a row, and
/// within a comment, is the same.
fn is_same(mut there: Vec<HistoryOp>, mut here: Vec<HistoryOp>) -> bool {
    let order = |a: &HistoryOp, b: &HistoryOp| {
        let of = |op: &HistoryOp| op.row.action == Action::Comment;
        let own = |op: &HistoryOp| if of(op) { op.row.span_id.clone() } else { String::new() };
        (&a.row.id, of(a)).cmp(&(&b.row.id, of(b))).then_with(|| own(a).cmp(&own(b)))
    };
    there.sort_by(order);
    here.sort_by(order);
    there.len() == here.len() && there.iter().zip(&here).all(|(there, here)| is_equal(there, here))
}

/// Returns whether operations are equal. The span ids of a merge are those of its row, in both histories.
fn is_equal(there: &HistoryOp, here: &HistoryOp) -> bool {
    let (a, b) = (&there.row, &here.row);
    (&a.id, a.action, &a.doc, &a.rules, &a.audit, a.created) == (&b.id, b.action, &b.doc, &b.rules, &b.audit, b.created)
        && (&a.span_id, &a.root_span_id, a.is_root) == (&b.span_id, &b.root_span_id, b.is_root)
}
