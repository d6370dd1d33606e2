//! What hangs on rows beside their documents: comments, and what writes said of where they came from. Read for many
//! rows at once, so that a page of rows costs each segment one read or two.

use std::collections::HashMap;

use assay_storage_model::command::Action;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_segments::{Columns, SoughtId};
use bytes::Bytes;

use crate::error::ShardError;
use crate::memory::{MemoryRow, is_row};
use crate::read::{Event, View, memory_event, segment_event};

/// Of one id, each oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    pub comments: Vec<Event>,
    /// Writes with an audit note; what they wrote is left out.
    pub audits: Vec<Event>,
}

impl View {
    /// The notes on these ids as of `at`; ids without any are left out.
    pub fn notes(&self, object: &ObjectKey, ids: &[&str], at: Xact) -> Result<HashMap<String, Notes>, ShardError> {
        self.admit(object, at)?;
        let mut notes: HashMap<String, Notes> = HashMap::new();
        for generation in &self.generations {
            for id in ids {
                for (_, row) in generation.history(object, id) {
                    if is_note(&row, at) {
                        put(&mut notes, id, memory_event(row));
                    }
                }
            }
        }
        let has_comments = self.object(object).is_some_and(|record| record.comments > 0);
        let sought: Vec<SoughtId<'_>> = ids.iter().map(|id| SoughtId::new(*object, id)).collect();
        for live in self.segments.iter().filter(|live| live.meta().xact_min <= at) {
            let (mut versions, mut comments) = (Vec::new(), Vec::new());
            for sought in &sought {
                for hit in live.segment.find(sought)?.into_iter().filter(|hit| hit.xact <= at) {
                    if is_row(hit.action) {
                        versions.push(hit.row);
                    } else if hit.action == Action::Comment && has_comments && at < live.end(hit.row, hit.end) {
                        comments.push(hit.row);
                    }
                }
            }
            for (mut rows, columns) in [(versions, Columns::Audits), (comments, Columns::All)] {
                rows.sort_unstable();
                rows.dedup();
                if rows.is_empty() {
                    continue;
                }
                for row in live.segment.read(&rows, columns)? {
                    if row.action == Action::Comment || row.audit.as_ref().is_some_and(|audit| !audit.is_empty()) {
                        let id = row.id.clone();
                        put(&mut notes, &id, segment_event(row));
                    }
                }
            }
        }
        for notes in notes.values_mut() {
            notes.comments.sort_by_key(|event| event.xact);
            notes.audits.sort_by_key(|event| event.xact);
        }
        Ok(notes)
    }
}

fn is_note(row: &MemoryRow, at: Xact) -> bool {
    let seen = match row.action {
        Action::Comment => at < row.end,
        action => is_row(action) && !row.audit.is_empty(),
    };
    seen && row.xact <= at
}

fn put(notes: &mut HashMap<String, Notes>, id: &str, event: Event) {
    // Asked with the borrowed id first: most notes are on an id that has some.
    let of_id = match notes.get_mut(id) {
        Some(of_id) => of_id,
        None => notes.entry(id.to_owned()).or_default(),
    };
    match event.action {
        Action::Comment => of_id.comments.push(event),
        _ => of_id.audits.push(Event { written: Bytes::new(), rules: Bytes::new(), ..event }),
    }
}
