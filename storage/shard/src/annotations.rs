//! Annotations of rows: comments and the stated origin of writes.
//!
//! They are read for many rows at once, so that a page of rows costs one or two reads per segment.

use std::collections::HashMap;

use assay_storage_model::command::Action;
use assay_storage_model::merge::MergeError;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_segments::{Columns, SoughtId};
use bytes::Bytes;

use crate::error::ShardError;
use crate::memory::{MemoryRow, is_row};
use crate::read::{Event, View, memory_event, segment_event};

/// Notes on one id, each list oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    pub comments: Vec<Event>,
    /// Writes with an audit note, without their content.
    pub audits: Vec<Event>,
}

impl View {
    /// Returns the notes on these ids as of `at`, without ids that have none.
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
    // The borrowed id is tried first, because most notes are on an id that already has some.
    let of_id = match notes.get_mut(id) {
        Some(of_id) => of_id,
        None => notes.entry(id.to_owned()).or_default(),
    };
    match event.action {
        Action::Comment => of_id.comments.push(event),
        _ => of_id.audits.push(Event { written: Bytes::new(), rules: Bytes::new(), ..event }),
    }
}

impl Notes {
    /// Writes the comments as clients read them: a JSON list, or null if there are none.
    pub fn put_comments(&self, out: &mut Vec<u8>) -> Result<(), MergeError> {
        put_list(out, &self.comments, put_comment)
    }

    pub fn put_audits(&self, out: &mut Vec<u8>) -> Result<(), MergeError> {
        put_list(out, &self.audits, put_audit)
    }
}

fn put_xact(out: &mut Vec<u8>, xact: Xact) {
    out.extend_from_slice(format!(r#""_xact_id":"{xact}""#).as_bytes());
}

type PutEvent = fn(&mut Vec<u8>, &Event) -> Result<(), MergeError>;

/// Writes a JSON list of events, or null if there are none.
fn put_list(out: &mut Vec<u8>, events: &[Event], put: PutEvent) -> Result<(), MergeError> {
    if events.is_empty() {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    for (at, event) in events.iter().enumerate() {
        out.push(if at == 0 { b'[' } else { b',' });
        put(out, event)?;
    }
    out.push(b']');
    Ok(())
}

fn put_comment(out: &mut Vec<u8>, comment: &Event) -> Result<(), MergeError> {
    out.push(b'{');
    put_xact(out, comment.xact);
    out.push(b',');
    out.extend_from_slice(members(&comment.written)?);
    out.push(b',');
    put_source(out, comment)?;
    out.push(b'}');
    Ok(())
}

fn put_audit(out: &mut Vec<u8>, write: &Event) -> Result<(), MergeError> {
    let action = name_of(write.action);
    out.push(b'{');
    put_xact(out, write.xact);
    out.extend_from_slice(format!(r#","audit_data":{{"action":"{action}"}},"#).as_bytes());
    put_source(out, write)?;
    out.push(b'}');
    Ok(())
}

/// Returns the name of an action in the API.
fn name_of(action: Action) -> &'static str {
    match action {
        Action::Upsert => "upsert",
        Action::Merge => "merge",
        Action::Delete => "delete",
        Action::Comment => "comment",
    }
}

/// Returns the effect of one write as JSON text, with its origin if one was stated.
pub(crate) fn audit_data(action: Action, audit: &[u8]) -> Result<Vec<u8>, MergeError> {
    let mut out = format!(r#"{{"action":"{}""#, name_of(action)).into_bytes();
    if !audit.is_empty() {
        out.push(b',');
        out.extend_from_slice(members(audit)?);
    }
    out.push(b'}');
    Ok(out)
}

/// Writes `source` and `metadata` of an audit record.
fn put_source(out: &mut Vec<u8>, event: &Event) -> Result<(), MergeError> {
    let given = if event.audit.is_empty() { br#""source":null,"metadata":null"# } else { members(&event.audit)? };
    out.extend_from_slice(given);
    Ok(())
}

/// Returns the bytes between the braces of a stored object, which is never empty.
fn members(object: &[u8]) -> Result<&[u8], MergeError> {
    match object {
        [b'{', members @ .., b'}'] if !members.is_empty() => Ok(members),
        _ => Err(MergeError::Text { what: "no object with members", at: 0 }),
    }
}
