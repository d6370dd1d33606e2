//! Command for one client write to one object, with its merges.
//!
//! Merge results are computed before anything changes, so that a write is applied or refused as a whole.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use ahash::AHashMap;
use assay_storage_model::command::{Action, ExpectedRow, Outcome, RowOp, Write};
use assay_storage_model::event::ROW_BYTES_MAX;
use assay_storage_model::merge::{Effort, fold_within};
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use bytes::Bytes;

use crate::bases::Base;
use crate::core::{Core, Current, RowLocation};
use crate::error::ShardError;
use crate::memory::MemoryRow;
use crate::read::Comments;
use crate::requests::PriorRequest;
use crate::text::Text;

/// Change of the object's record by one write.
#[derive(Default)]
struct Change {
    rows: i64,
    comments: u64,
    digest: u32,
}

pub(super) fn apply(
    core: &mut Core,
    bytes: &Bytes,
    write: &Write<'_>,
    expected: &[ExpectedRow],
) -> Result<Outcome, ShardError> {
    let record = core.objects.read().get(&write.object).cloned().unwrap_or_default();
    if record.dropped {
        return Ok(Outcome::ObjectGone);
    }
    if let Some(request) = &write.request {
        match core.requests.find(request, core.last) {
            Some(PriorRequest::Same(xact)) => return Ok(Outcome::Duplicate { xact }),
            Some(PriorRequest::Other(xact)) => return Ok(Outcome::KeyReused { xact }),
            None => {}
        }
    }
    if let Some(row) = unexpected(core, write, expected)? {
        return Ok(Outcome::Conflict { row });
    }
    let mut folds = match folds(core, bytes, write)? {
        Ok(folds) => folds,
        Err(refused) => return Ok(refused),
    };
    let xact = core.last.next().max(write.assigned);
    let mut change = Change { digest: record.digest, ..Change::default() };
    let mut hanging = Hanging::default();
    for (row, op) in (0_u16..).zip(&write.rows) {
        let key = PaginationKey::new(xact, row);
        match op.action {
            Action::Upsert | Action::Merge => {
                let fold = folds.get_mut(usize::from(row)).and_then(Option::take);
                put(core, bytes, write, op, fold, xact, key, &mut change)?;
            }
            Action::Delete => delete(core, bytes, write, op, xact, &mut change)?,
            Action::Comment => {
                let there = match hanging.entry(op.id) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) if record.comments > 0 => {
                        new.insert(core.view().comments(&write.object, op.id)?)
                    }
                    Entry::Vacant(new) => new.insert(Comments::default()),
                };
                comment(core, bytes, write, op, xact, key, there, &mut change);
            }
        }
    }
    if let Some(request) = &write.request {
        core.requests.remember(request, xact);
    }
    core.last = xact;
    core.change_object(&write.object, |record| {
        record.rows = record.rows.saturating_add_signed(change.rows);
        record.comments += change.comments;
        record.last = xact;
        record.digest = change.digest;
    });
    Ok(Outcome::Written { xact })
}

/// Returns the first row whose live version is not the expected one.
fn unexpected(core: &Core, write: &Write<'_>, expected: &[ExpectedRow]) -> Result<Option<u32>, ShardError> {
    for condition in expected {
        let Some(op) = write.rows.get(condition.row as usize) else { return Ok(Some(condition.row)) };
        let found = core.current(&write.object, op.id)?.map_or(Xact::ZERO, |current| current.xact);
        if found != condition.version {
            return Ok(Some(condition.row));
        }
    }
    Ok(None)
}

/// Comments on each target of a write. They are looked up once per target, because one write may hold thousands of
/// comments on it.
type Hanging<'w> = HashMap<&'w str, Comments>;

/// Result of one merge.
struct Fold {
    doc: Bytes,
    /// Row that the merge applies to, or `None` if an earlier row of the same write changed it.
    found: Option<MergeTarget>,
}

/// Row that a merge found, if any.
struct MergeTarget {
    current: Option<Current>,
    base: Option<Base>,
}

/// Computes the merge result for each row of the write. The result is empty if the write has no merges.
fn folds(core: &mut Core, bytes: &Bytes, write: &Write<'_>) -> Result<Result<Vec<Option<Fold>>, Outcome>, ShardError> {
    let mut folds = Vec::new();
    if write.rows.iter().all(|op| op.action != Action::Merge) {
        return Ok(Ok(folds));
    }
    // Documents that earlier rows of this write produced, for merges onto them.
    let mut changed: AHashMap<&str, Option<Bytes>> = AHashMap::with_capacity(write.rows.len());
    let mut effort = Effort::default();
    for (row, op) in (0_u32..).zip(&write.rows) {
        let mut fold_of_row = None;
        match op.action {
            Action::Comment => {}
            Action::Delete => drop(changed.insert(op.id, None)),
            Action::Upsert => drop(changed.insert(op.id, Some(slice(bytes, op.doc)))),
            Action::Merge => {
                let earlier = changed.get(op.id).cloned();
                let found = if earlier.is_none() { Some(find(core, &write.object, op.id)?) } else { None };
                let base = match (&earlier, &found) {
                    (Some(doc), _) => doc.as_deref(),
                    (None, found) => found.as_ref().and_then(|found| Some(&found.base.as_ref()?.doc[..])),
                };
                let doc = match fold_within(base, op, &mut effort) {
                    Ok(doc) if doc.len() <= ROW_BYTES_MAX => Bytes::from(doc),
                    Ok(doc) => return Ok(Err(too_large(row, doc.len()))),
                    Err(error) => return Ok(Err(Outcome::Refused { row, reason: error.to_string() })),
                };
                changed.insert(op.id, Some(doc.clone()));
                fold_of_row = Some(Fold { doc, found });
            }
        }
        folds.push(fold_of_row);
    }
    Ok(Ok(folds))
}

fn find(core: &mut Core, object: &ObjectKey, id: &str) -> Result<MergeTarget, ShardError> {
    let current = core.current(object, id)?;
    let base = match &current {
        Some(current) => Some(core.base(object, id, current)?),
        None => None,
    };
    Ok(MergeTarget { current, base })
}

fn too_large(row: u32, bytes: usize) -> Outcome {
    let reason = format!("makes a row of {bytes} bytes with what is there; a row has at most {ROW_BYTES_MAX}");
    Outcome::Refused { row, reason }
}

/// Inserts the new version of a row.
#[expect(clippy::too_many_arguments, reason = "the pieces of one write, used once")]
fn put(
    core: &mut Core,
    bytes: &Bytes,
    write: &Write<'_>,
    op: &RowOp<'_>,
    fold: Option<Fold>,
    xact: Xact,
    new_key: PaginationKey,
    change: &mut Change,
) -> Result<(), ShardError> {
    let object = &write.object;
    let mut row = new_row(bytes, op, xact, new_key);
    let current = match fold {
        None => core.current(object, op.id)?,
        Some(Fold { doc, found }) => {
            let MergeTarget { current, base } = match found {
                Some(found) => found,
                None => find(core, object, op.id)?,
            };
            row.patch = bytes.slice_ref(op.doc);
            row.doc = doc;
            if let Some(base) = base {
                row.span_id = base.span_id;
                row.root_span_id = base.root_span_id;
                row.is_root = base.is_root;
                row.created = base.created;
            }
            current
        }
    };
    match &current {
        Some(current) => {
            row.key = current.key;
            core.supersede(object, &current.place, xact);
        }
        None => change.rows += 1,
    }
    change.digest = digest(change.digest, &row);
    core.active.insert(*object, row);
    Ok(())
}

/// Inserts a tombstone if there is a row to delete.
fn delete(
    core: &mut Core,
    bytes: &Bytes,
    write: &Write<'_>,
    op: &RowOp<'_>,
    xact: Xact,
    change: &mut Change,
) -> Result<(), ShardError> {
    let Some(current) = core.current(&write.object, op.id)? else { return Ok(()) };
    core.supersede(&write.object, &current.place, xact);
    let mut row = new_row(bytes, op, xact, current.key);
    row.end = xact;
    row.doc = Bytes::new();
    change.rows -= 1;
    change.digest = digest(change.digest, &row);
    core.active.insert(write.object, row);
    Ok(())
}

/// Inserts a comment on its target's id. The same comment sent again replaces itself.
#[expect(clippy::too_many_arguments, reason = "the pieces of one write, used once")]
fn comment(
    core: &mut Core,
    bytes: &Bytes,
    write: &Write<'_>,
    op: &RowOp<'_>,
    xact: Xact,
    key: PaginationKey,
    there: &mut Comments,
    change: &mut Change,
) {
    let mut row = new_row(bytes, op, xact, key);
    match there.remove(op.span_id) {
        Some((place, key)) => {
            core.supersede(&write.object, &place, xact);
            row.key = key;
        }
        None => change.comments += 1,
    }
    change.digest = digest(change.digest, &row);
    let (key, own_id) = (row.key, row.span_id.clone());
    let index = core.active.insert(write.object, row);
    there.insert(own_id, (RowLocation::Memory { generation: Arc::clone(&core.active), index }, key));
}

fn new_row(bytes: &Bytes, op: &RowOp<'_>, xact: Xact, key: PaginationKey) -> MemoryRow {
    MemoryRow {
        key,
        xact,
        end: Xact::MAX,
        action: op.action,
        is_root: op.is_root,
        created: op.created,
        id: Text::within(bytes, op.id),
        span_id: Text::within(bytes, op.span_id),
        root_span_id: Text::within(bytes, op.root_span_id),
        doc: slice(bytes, op.doc),
        patch: Bytes::new(),
        rules: slice(bytes, op.rules),
        audit: slice(bytes, op.audit),
    }
}

fn slice(bytes: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() { Bytes::new() } else { bytes.slice_ref(part) }
}

/// Returns the digest with one more version. It is equal on replicas that applied the same entries.
///
/// The document of an upsert comes from the log, which has chained checksums, so its length represents it. A merge
/// result is computed here, so all of its bytes count.
fn digest(before: u32, row: &MemoryRow) -> u32 {
    let digest = crc32c::crc32c_append(before, &row.xact.0.to_le_bytes());
    let digest = crc32c::crc32c_append(digest, &[row.action as u8]);
    let digest = crc32c::crc32c_append(digest, row.id.as_str().as_bytes());
    match row.action {
        Action::Merge => crc32c::crc32c_append(digest, &row.doc),
        _ => crc32c::crc32c_append(digest, &(row.doc.len() as u64).to_le_bytes()),
    }
}
