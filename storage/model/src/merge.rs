//! Merging of writes into rows: pure functions over JSON texts.
//!
//! A merge runs in apply for every second span, so no document is parsed. Objects are split into keys and raw values,
//! and members of only one side are copied unchanged. Only tags and lists that lose values are parsed.
//!
//! Effects of a merge on a row, in this order:
//! 1. Objects that both sides have are merged member by member; anything else of the patch replaces, null too.
//! 2. A value at a path of `merge_paths` replaces whole; the levels above it are still merged.
//! 3. Top-level `tags` become a set union, the row's first, unless `["tags"]` is a merge path.
//! 4. `array_delete` takes its values out of the list at its path, last: a value both added and deleted is gone.
//!    Values compare as JSON: order of members is nothing, 1 equals 1.0.
//! 5. Values of `FIRST_WRITERS` from the first writer stay, whatever the patch has.
//!
//! Without a row the patch is the row, completed from its operation, and rule 4 still holds, so that a merge sent twice
//! makes the same row as one sent once. Members keep the row's order; new ones follow in the patch's order. No key is
//! special: `__proto__` is data. Documents come from `event::prepare`: objects without duplicate keys, at most
//! `DEPTH_MAX` deep. Invalid text is refused, never a panic.

mod batch;
mod pick;
mod rules;
mod split;
mod values;

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use thiserror::Error;

pub use self::batch::fold_batch;
pub use self::pick::{Picker, Step};
pub(crate) use self::rules::{ArrayDelete, Rules};
pub use self::split::{DocField, doc_field, doc_fields};
use self::split::{Member, elements, members};
use self::values::ValueSet;
use crate::command::{Action, RowOp};
use crate::event::{DEPTH_MAX, format_micros};

/// Fields of a row that a merge never changes: position in the trace and first appearance.
pub const FIRST_WRITERS: [&str; 7] =
    ["id", "created", "span_id", "root_span_id", "span_parents", "_parent_id", "is_root"];

/// Bytes of rows that the merges of one write may go through. Each merge reads its row whole and makes it anew, and apply
/// holds what each made: ten thousand merges of thirty bytes onto one large row would be 90 GiB.
pub const FOLDED_BYTES_MAX: usize = 64 << 20;

/// Up to here keys and tags are looked for one by one; above, in a map.
const MEMBERS_SEARCHED_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    #[error("a document is not a JSON object: {what} at byte {at}")]
    Text { what: &'static str, at: usize },
    #[error("merge rules cannot be decoded: {0}")]
    Rules(String),
    #[error("a document is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("{0:?} does not produce a document")]
    NoDocument(Action),
    #[error("the merges of one write read over {FOLDED_BYTES_MAX} bytes of rows: send them in several requests")]
    TooMuch,
}

/// Work of the merges of one write so far. The first merge is always allowed: a row has a limit of its own.
#[derive(Debug, Default)]
pub struct Effort {
    bytes: usize,
}

impl Effort {
    fn spend(&mut self, bytes: usize) -> Result<(), MergeError> {
        let sum = self.bytes.saturating_add(bytes);
        if self.bytes > 0 && sum > FOLDED_BYTES_MAX {
            return Err(MergeError::TooMuch);
        }
        self.bytes = sum;
        Ok(())
    }
}

/// `fold_within` for one operation by itself.
pub fn fold(base: Option<&[u8]>, op: &RowOp<'_>) -> Result<Vec<u8>, MergeError> {
    fold_within(base, op, &mut Effort::default())
}

/// The document of a row after `op`, `base` being the document of the live row it finds.
pub fn fold_within(base: Option<&[u8]>, op: &RowOp<'_>, effort: &mut Effort) -> Result<Vec<u8>, MergeError> {
    match op.action {
        Action::Upsert => Ok(op.doc.to_vec()),
        Action::Merge => {
            let rules = Rules::parse(op.rules)?;
            let found = base.map_or(0, <[u8]>::len);
            effort.spend(found + (found + op.doc.len()) * rules.array_delete.len())?;
            let merged = match base {
                Some(base) => merged(base, op.doc, &rules)?,
                None => completed(op)?,
            };
            rules.without_deleted(merged)
        }
        Action::Delete | Action::Comment => Err(MergeError::NoDocument(op.action)),
    }
}

fn merged(base: &[u8], patch: &[u8], rules: &Rules) -> Result<Vec<u8>, MergeError> {
    let paths: Vec<&[String]> = rules.merge_paths.iter().map(Vec::as_slice).collect();
    let mut out = Vec::with_capacity(base.len() + patch.len());
    merge_objects(base, patch, &paths, 1, &mut out)?;
    Ok(out)
}

/// The patch as a whole row: first what places it, from the patch or else from its operation, then the rest.
fn completed(op: &RowOp<'_>) -> Result<Vec<u8>, MergeError> {
    let given = members(op.doc)?;
    let names = given.iter().map(Member::text).collect::<Result<Vec<_>, _>>()?;
    let text = |text: &str| Value::from(text).to_string();
    let head = [
        ("id", text(op.id)),
        ("created", text(&format_micros(op.created))),
        ("span_id", text(op.span_id)),
        ("root_span_id", text(op.root_span_id)),
        ("span_parents", "null".to_owned()),
        ("is_root", op.is_root.to_string()),
    ];
    let mut out = Vec::with_capacity(op.doc.len() + 256);
    out.push(b'{');
    for (name, default) in &head {
        let sent = names.iter().position(|given| given == name);
        put_key(&mut out, format!("\"{name}\"").as_bytes());
        out.extend_from_slice(sent.map_or(default.as_bytes(), |at| given[at].value));
    }
    for (member, name) in given.iter().zip(&names) {
        if head.iter().all(|(in_head, _)| in_head != name) {
            put_key(&mut out, member.key);
            out.extend_from_slice(member.value);
        }
    }
    out.push(b'}');
    Ok(out)
}

/// Writes one merged object. `paths` are the merge paths that lead here, without the part already walked.
fn merge_objects(
    base: &[u8],
    patch: &[u8],
    paths: &[&[String]],
    level: usize,
    out: &mut Vec<u8>,
) -> Result<(), MergeError> {
    if level > DEPTH_MAX {
        return Err(MergeError::TooDeep);
    }
    let patch = members(patch)?;
    let patched = Index::new(&patch)?;
    let mut used = vec![false; patch.len()];
    out.push(b'{');
    for member in members(base)? {
        put_key(out, member.key);
        let Some(at) = patched.find(&member)? else {
            out.extend_from_slice(member.value);
            continue;
        };
        used[at] = true;
        merge_values(&member, &patch[at], paths, level, out)?;
    }
    for (member, _) in patch.iter().zip(used).filter(|(_, used)| !used) {
        if level == 1 && is_first_writers(member)? {
            continue;
        }
        put_key(out, member.key);
        out.extend_from_slice(member.value);
    }
    out.push(b'}');
    Ok(())
}

fn merge_values(
    base: &Member<'_>,
    patch: &Member<'_>,
    paths: &[&[String]],
    level: usize,
    out: &mut Vec<u8>,
) -> Result<(), MergeError> {
    if level == 1 && is_first_writers(base)? {
        out.extend_from_slice(base.value);
        return Ok(());
    }
    let below = paths_below(paths, base)?;
    let whole = below.iter().any(|path| path.is_empty());
    if !whole && base.is_object() && patch.is_object() {
        return merge_objects(base.value, patch.value, &below, level + 1, out);
    }
    if !whole && level == 1 && base.is_array() && patch.is_array() && base.text()? == "tags" {
        return unite(base.value, patch.value, out);
    }
    out.extend_from_slice(patch.value);
    Ok(())
}

fn is_first_writers(member: &Member<'_>) -> Result<bool, MergeError> {
    Ok(FIRST_WRITERS.contains(&member.text()?.as_ref()))
}

/// Returns the rest of the merge paths after a step to `member`; an empty one ends there.
fn paths_below<'p>(paths: &[&'p [String]], member: &Member<'_>) -> Result<Vec<&'p [String]>, MergeError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let name = member.text()?;
    Ok(paths.iter().filter_map(|path| path.split_first()).filter(|(first, _)| **first == *name).map(|p| p.1).collect())
}

/// Writes the set union of two arrays: the row's values first, each once.
fn unite(base: &[u8], patch: &[u8], out: &mut Vec<u8>) -> Result<(), MergeError> {
    let mut all = elements(base)?;
    all.extend(elements(patch)?);
    let few = all.len() <= MEMBERS_SEARCHED_MAX && all.iter().all(|element| is_plain_string(element));
    let mut seen = ValueSet::default();
    out.push(b'[');
    for (at, element) in all.iter().enumerate() {
        // Strings without escapes are equal where their texts are; that is nearly every tag.
        let new = if few { !all[..at].contains(element) } else { seen.insert(values::read(element)?) };
        if new {
            comma(out);
            out.extend_from_slice(element);
        }
    }
    out.push(b']');
    Ok(())
}

fn is_plain_string(element: &[u8]) -> bool {
    element.first() == Some(&b'"') && !element.contains(&b'\\')
}

fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
}

fn put_key(out: &mut Vec<u8>, key: &[u8]) {
    comma(out);
    out.extend_from_slice(key);
    out.push(b':');
}

/// Finds the member of a patch that has a key.
enum Index<'m, 'a> {
    Few(&'m [Member<'a>]),
    Many(HashMap<Cow<'a, str>, usize>),
}

impl<'m, 'a> Index<'m, 'a> {
    fn new(members: &'m [Member<'a>]) -> Result<Self, MergeError> {
        if members.len() <= MEMBERS_SEARCHED_MAX {
            return Ok(Index::Few(members));
        }
        let places = members.iter().enumerate().map(|(at, member)| Ok((member.text()?, at)));
        places.collect::<Result<_, MergeError>>().map(Index::Many)
    }

    fn find(&self, wanted: &Member<'_>) -> Result<Option<usize>, MergeError> {
        match self {
            Index::Many(places) => Ok(places.get(wanted.text()?.as_ref()).copied()),
            Index::Few(members) => {
                for (at, member) in members.iter().enumerate() {
                    if member.has_key_of(wanted)? {
                        return Ok(Some(at));
                    }
                }
                Ok(None)
            }
        }
    }
}
