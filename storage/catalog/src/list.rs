//! Pages of lists for clients, newest first, ties by id. A cursor is the id of a record, possibly a deleted one.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;

use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use thiserror::Error;
use uuid::Uuid;

use crate::state::{OrderKey, State};

#[derive(Clone, Copy, Debug)]
pub struct ListQuery {
    pub kind: RecordKind,
    /// Organization of the records, or `None` for records above organizations.
    pub org: Option<OrgId>,
    pub cursor: Option<Cursor>,
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// Cursor of the next page: older records, after this one in the list.
    After(Uuid),
    /// Cursor of the previous page: the records directly before this one.
    Before(Uuid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no {kind} has the id {id} from which the list should continue")]
pub struct UnknownCursor {
    pub kind: RecordKind,
    pub id: Uuid,
}

impl State {
    /// Returns a page of the records that `keep` accepts, newest first.
    pub fn list(
        &self,
        query: &ListQuery,
        mut keep: impl FnMut(&Record) -> bool,
    ) -> Result<Vec<Arc<Record>>, UnknownCursor> {
        let at = |created, id| -> OrderKey { (query.kind, query.org, Reverse(created), id) };
        let (newest, oldest) = (at(i64::MAX, Uuid::nil()), at(i64::MIN, Uuid::max()));
        let (mut from, mut to) = (Bound::Included(newest), Bound::Included(oldest));
        match query.cursor {
            None => {}
            Some(Cursor::After(id)) => from = Bound::Excluded(at(self.created_of(query, id)?, id)),
            Some(Cursor::Before(id)) => to = Bound::Excluded(at(self.created_of(query, id)?, id)),
        }
        let record = |place: &OrderKey| self.records.get(&(place.0, place.3)).cloned();
        let range = self.order.range((from, to));
        if let Some(Cursor::Before(_)) = query.cursor {
            let mut page: Vec<_> =
                range.rev().filter_map(record).filter(|record| keep(record)).take(query.limit).collect();
            page.reverse();
            return Ok(page);
        }
        Ok(range.filter_map(record).filter(|record| keep(record)).take(query.limit).collect())
    }

    /// Returns whether an organization has at least this many records of a kind. It reads at most that many.
    pub fn has_at_least(&self, kind: RecordKind, org: Option<OrgId>, count: usize) -> bool {
        let at = |created, id| -> OrderKey { (kind, org, Reverse(created), id) };
        let all = self.order.range(at(i64::MAX, Uuid::nil())..=at(i64::MIN, Uuid::max()));
        count == 0 || all.take(count).count() == count
    }

    /// Returns the creation time of a record, even of a deleted one.
    pub fn created(&self, kind: RecordKind, id: Uuid) -> Option<i64> {
        let live = self.records.get(&(kind, id)).map(|record| record.created);
        live.or_else(|| self.deleted.created(kind, id))
    }

    /// Returns the creation time of a cursor's record. A record of another organization is unknown to the caller.
    fn created_of(&self, query: &ListQuery, id: Uuid) -> Result<i64, UnknownCursor> {
        let kind = query.kind;
        let is_foreign = self.records.get(&(kind, id)).is_some_and(|record| record.org != query.org);
        self.created(kind, id).filter(|_| !is_foreign).ok_or(UnknownCursor { kind, id })
    }
}
