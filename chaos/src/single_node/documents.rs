//! Documents of the workload: rows described by a few numbers, from which worker and checker make the same documents.

use std::hash::{DefaultHasher, Hash, Hasher};

use assay_storage_model::command::{Action, Command, RequestId, RowOp, Write};
use assay_storage_model::{ObjectKey, Xact};
use bytes::Bytes;
use rand::Rng;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Longer texts are compared by length and hash.
const SHOWN_CHARS_MAX: usize = 80;
/// Ids of rows in one object; few, so that writes collide.
const IDS: u32 = 60;
/// Ids of comments on one row.
const COMMENTS: u32 = 3;
/// Traces of one object.
const TRACES: u32 = 12;
/// One write in so many is larger than what travels in the log itself.
const LARGE_WRITE_ONE_IN: u32 = 250;
const LARGE_BYTES: u32 = 520 << 10;
/// One row in so many has a text of some kilobytes.
const MIDDLE_ROW_ONE_IN: u32 = 10;
const MIDDLE_BYTES_MAX: u32 = 8 << 10;
pub const ROWS_PER_WRITE: u32 = 5;

/// One row of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSpec {
    pub id: String,
    pub action: Action,
    /// A comment's own id; else the row's span.
    pub own: String,
    pub root: String,
    pub field: u8,
    pub value: u32,
    /// Length of a filling text; none if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pad: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rule: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A merge whose `metadata` replaces whole.
pub const RULE_PATHS: u32 = 1;
/// A merge that takes a tag away.
pub const RULE_ARRAY_DELETE: u32 = 2;

impl RowSpec {
    pub fn document(&self) -> Value {
        let mut doc = Map::new();
        match self.action {
            Action::Delete => {}
            Action::Comment => {
                doc.insert("id".into(), json!(self.own));
                doc.insert("origin".into(), json!({ "id": self.id }));
                doc.insert("comment".into(), json!({ "text": self.value }));
            }
            Action::Upsert => {
                doc.insert("id".into(), json!(self.id));
                doc.insert("span_id".into(), json!(self.own));
                doc.insert("root_span_id".into(), json!(self.root));
                self.put_fields(&mut doc);
            }
            Action::Merge => self.put_fields(&mut doc),
        }
        Value::Object(doc)
    }

    fn put_fields(&self, doc: &mut Map<String, Value>) {
        let nested =
            json!({ format!("f{}", self.field): self.value, "deep": { format!("g{}", self.value % 3): self.value } });
        doc.insert("metadata".into(), nested);
        doc.insert("tags".into(), json!([self.tag()]));
        if !self.value.is_multiple_of(4) {
            doc.insert("output".into(), json!(self.value));
        } else if self.action == Action::Merge {
            doc.insert("output".into(), Value::Null);
        }
        if self.pad > 0 {
            doc.insert("input".into(), Value::String(filling(self.value, self.pad)));
        }
    }

    fn tag(&self) -> String {
        format!("t{}", self.value % 7)
    }

    /// Returns the tag that a merge with `RULE_ARRAY_DELETE` removes.
    pub fn deleted_tag(&self) -> String {
        format!("t{}", (self.value + 1) % 7)
    }

    pub fn rules(&self) -> String {
        match self.rule {
            RULE_PATHS => json!({ "merge_paths": [["metadata"]], "array_delete": [] }).to_string(),
            RULE_ARRAY_DELETE => {
                let item = json!({ "path": ["tags"], "delete": [self.deleted_tag()] });
                json!({ "merge_paths": [], "array_delete": [item] }).to_string()
            }
            _ => String::new(),
        }
    }

    pub fn as_op<'a>(&'a self, doc: &'a str, rules: &'a str, audit: &'a str) -> RowOp<'a> {
        RowOp {
            id: &self.id,
            action: self.action,
            span_id: &self.own,
            root_span_id: &self.root,
            is_root: true,
            created: 0,
            doc: doc.as_bytes(),
            rules: rules.as_bytes(),
            audit: audit.as_bytes(),
        }
    }
}

/// A text of `length` letters that does not compress to nothing.
fn filling(seed: u32, length: u32) -> String {
    let mut state = u64::from(seed) | 1 << 40;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + ((state >> 33) % 26) as u8)
    };
    (0..length).map(letter).collect()
}

/// Rows are named `row-0` up to below this.
pub fn ids() -> u32 {
    IDS
}

/// Returns the rows of one random write; the first one leaves a trace whatever was there before.
pub fn random_write(rng: &mut impl Rng) -> Vec<RowSpec> {
    if rng.random_ratio(1, LARGE_WRITE_ONE_IN) {
        return large_write(rng);
    }
    let count = rng.random_range(1..=ROWS_PER_WRITE);
    let mut rows: Vec<RowSpec> = Vec::new();
    for _ in 0..count {
        let row = random_row(rng, rows.is_empty());
        // The order of two operations on one id within a write is another test's business.
        if rows.iter().all(|other| other.id != row.id) {
            rows.push(row);
        }
    }
    rows
}

/// A write too large for the log itself.
pub fn large_write(rng: &mut impl Rng) -> Vec<RowSpec> {
    let mut row = random_row(rng, true);
    row.pad = LARGE_BYTES;
    vec![row]
}

fn random_row(rng: &mut impl Rng, lasting: bool) -> RowSpec {
    // The square prefers low numbers: a few rows are written again and again.
    let unit: f64 = rng.random();
    let number = (unit * unit * f64::from(IDS)) as u32;
    let id = format!("row-{number}");
    let action = match rng.random_range(0..10) {
        0..4 => Action::Upsert,
        4..8 => Action::Merge,
        _ if lasting => Action::Merge,
        8 => Action::Delete,
        _ => Action::Comment,
    };
    let own = match action {
        Action::Comment => format!("comment-{number}-{}", rng.random_range(0..COMMENTS)),
        _ => format!("span-{number}"),
    };
    let rule = if action == Action::Merge { rng.random_range(0..6) } else { 0 };
    let keeps_text = matches!(action, Action::Upsert | Action::Merge) && rng.random_ratio(1, MIDDLE_ROW_ONE_IN);
    RowSpec {
        id,
        action,
        own,
        root: format!("trace-{}", number % TRACES),
        field: rng.random_range(0..4),
        value: rng.random(),
        pad: if keeps_text { rng.random_range(100..MIDDLE_BYTES_MAX) } else { 0 },
        rule: if rule <= RULE_ARRAY_DELETE { rule } else { 0 },
    }
}

/// Returns the command of a write; `name` is stored in its rows, by which they are found.
pub fn write_command(object: ObjectKey, assigned: Xact, request: Option<&str>, name: &str, rows: &[RowSpec]) -> Bytes {
    let audit = json!({ "source": "external", "metadata": { "write": name } }).to_string();
    let texts: Vec<(String, String)> = rows.iter().map(|row| (row.document().to_string(), row.rules())).collect();
    let command = Command::Write(Write {
        object,
        assigned,
        request: request.map(|request| request_id(request, rows)),
        rows: rows.iter().zip(&texts).map(|(row, (doc, rules))| row.as_op(doc, rules, &audit)).collect(),
    });
    Bytes::from(command.encode())
}

pub fn request_id(request: &str, rows: &[RowSpec]) -> RequestId {
    RequestId { key: fingerprint(request), content: fingerprint(&format!("{rows:?}")) }
}

/// Returns a sixteen-byte fingerprint of a text.
fn fingerprint(text: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (half, salt) in bytes.chunks_mut(8).zip(["one", "other"]) {
        let mut hasher = DefaultHasher::new();
        (salt, text).hash(&mut hasher);
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    bytes
}

/// A document with its long texts replaced by their length and hash.
pub fn condensed(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > SHOWN_CHARS_MAX => {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            json!(format!("~{}:{:016x}", text.len(), hasher.finish()))
        }
        Value::Array(items) => items.into_iter().map(condensed).collect(),
        Value::Object(members) => members.into_iter().map(|(name, member)| (name, condensed(member))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn a_seed_makes_the_same_writes_again() {
        let writes = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            (0..50).map(|_| random_write(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(writes(7), writes(7));
        assert_ne!(writes(7), writes(8));
        assert!(writes(9).iter().all(|rows| matches!(rows[0].action, Action::Upsert | Action::Merge)));
    }

    #[test]
    fn a_long_text_is_told_from_another_of_its_length() {
        let (one, other) = (filling(1, 200), filling(2, 200));
        assert_ne!(condensed(json!(one)), condensed(json!(other)));
        assert_eq!(condensed(json!({"a": ["short"]})), json!({"a": ["short"]}));
    }
}
