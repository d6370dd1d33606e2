//! Documents of sealed rows, read ahead for merges. A cache: a missing one costs a read.

use std::collections::{HashMap, VecDeque};

use assay_storage_model::{ObjectKey, Xact};
use bytes::Bytes;

use crate::text::Text;

/// Per shard; the oldest go first.
pub const BASES_BYTES_MAX: usize = 4 << 20;

/// Part of an existing row that a merge takes over.
#[derive(Clone, Debug)]
pub struct Base {
    pub doc: Bytes,
    pub span_id: Text,
    pub root_span_id: Text,
    pub is_root: bool,
    pub created: i64,
}

#[derive(Debug, Default)]
pub struct Bases {
    kept: HashMap<(ObjectKey, String), (Xact, Base)>,
    order: VecDeque<(ObjectKey, String)>,
    bytes: usize,
}

impl Bases {
    pub fn put(&mut self, object: &ObjectKey, id: &str, xact: Xact, base: Base) {
        let name = (*object, id.to_owned());
        self.bytes += base.doc.len();
        if let Some((_, before)) = self.kept.insert(name.clone(), (xact, base)) {
            self.bytes -= before.doc.len();
        } else {
            self.order.push_back(name);
        }
        while self.bytes > BASES_BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some((_, gone)) = self.kept.remove(&oldest) {
                self.bytes -= gone.doc.len();
            }
        }
    }

    /// Taken, not read: after the merge this version is history.
    pub fn take(&mut self, object: &ObjectKey, id: &str, xact: Xact) -> Option<Base> {
        if self.kept.is_empty() {
            return None;
        }
        let (kept_xact, base) = self.kept.remove(&(*object, id.to_owned()))?;
        self.bytes -= base.doc.len();
        // The name stays in `order` and is passed over when its turn comes.
        (kept_xact == xact).then_some(base)
    }
}
