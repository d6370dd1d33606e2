//! Cache of documents of sealed rows, read ahead for merges. A missing document costs one read.

use std::collections::{BTreeMap, HashMap};

use assay_storage_model::{ObjectKey, Xact};
use bytes::Bytes;

use crate::text::Text;

/// Upper bound of the cached documents of a shard, beyond which the oldest entries are evicted.
pub const BASES_BYTES_MAX: usize = 4 << 20;

/// Part of an existing row that a merge adopts.
#[derive(Clone, Debug)]
pub struct Base {
    pub doc: Bytes,
    pub span_id: Text,
    pub root_span_id: Text,
    pub is_root: bool,
    pub created: i64,
}

type RowName = (ObjectKey, String);

#[derive(Debug)]
struct CachedBase {
    /// Position in the order of insertion.
    number: u64,
    xact: Xact,
    base: Base,
}

#[derive(Debug, Default)]
pub struct Bases {
    kept: HashMap<RowName, CachedBase>,
    /// Names of the cached documents by the number of their insertion.
    order: BTreeMap<u64, RowName>,
    next: u64,
    bytes: usize,
}

impl Bases {
    pub fn put(&mut self, object: &ObjectKey, id: &str, xact: Xact, base: Base) {
        let name = (*object, id.to_owned());
        self.remove(&name);
        self.bytes += base.doc.len();
        self.order.insert(self.next, name.clone());
        self.kept.insert(name, CachedBase { number: self.next, xact, base });
        self.next += 1;
        while self.bytes > BASES_BYTES_MAX {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, name: &RowName) -> Option<CachedBase> {
        let kept = self.kept.remove(name)?;
        self.order.remove(&kept.number);
        self.bytes -= kept.base.doc.len();
        Some(kept)
    }

    /// Removes a document, because its version is history after the merge.
    pub fn take(&mut self, object: &ObjectKey, id: &str, xact: Xact) -> Option<Base> {
        if self.kept.is_empty() {
            return None;
        }
        let kept = self.remove(&(*object, id.to_owned()))?;
        (kept.xact == xact).then_some(kept.base)
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    use super::*;

    fn base(bytes: usize) -> Base {
        let text = || Text::copied("s");
        Base { doc: vec![0; bytes].into(), span_id: text(), root_span_id: text(), is_root: true, created: 0 }
    }

    #[test]
    fn names_leave_with_their_documents() {
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(2));
        let mut bases = Bases::default();
        for number in 0..1000u64 {
            bases.put(&object, &number.to_string(), Xact(number), base(10));
            bases.put(&object, &number.to_string(), Xact(number), base(20));
            assert!(bases.take(&object, &number.to_string(), Xact(number)).is_some());
        }
        assert_eq!((bases.order.len(), bases.kept.len(), bases.bytes), (0, 0, 0));
        for number in 0..3 {
            bases.put(&object, &number.to_string(), Xact(number), base(BASES_BYTES_MAX / 2));
        }
        assert!(bases.take(&object, "0", Xact(0)).is_none(), "the oldest one was evicted");
        assert!(bases.take(&object, "1", Xact(9)).is_none(), "another version");
        assert_eq!((bases.order.len(), bases.bytes), (1, BASES_BYTES_MAX / 2));
    }
}
