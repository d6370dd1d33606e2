//! Write on its way to its object's actor: prepared on this node, or encoded by another one.

use assay_storage_model::command::{Action, Command, DecodeError, RequestId};
use assay_storage_model::{ObjectKey, Xact};
use bytes::Bytes;

use crate::write_path::prepare::Prepared;

/// Write on its way to its object's actor.
#[derive(Debug)]
pub(crate) enum Work {
    Prepared(Prepared),
    Encoded(Encoded),
}

/// Encoded command without its final id, and the fields that were decoded from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub object: ObjectKey,
    pub request: Option<RequestId>,
    pub rows: usize,
    pub has_merges: bool,
    pub command: Bytes,
}

impl Encoded {
    /// Decodes a command from a node of this cluster. Refuses commands other than writes.
    pub fn read(command: Bytes) -> Result<Encoded, DecodeError> {
        match Command::decode(&command)?.into_write() {
            Some((write, _)) => Ok(Encoded {
                object: write.object,
                request: write.request,
                rows: write.rows.len(),
                has_merges: write.rows.iter().any(|row| row.action == Action::Merge),
                command: command.clone(),
            }),
            None => Err(DecodeError::Body("not a write".into())),
        }
    }
}

impl Work {
    pub fn object(&self) -> ObjectKey {
        match self {
            Work::Prepared(write) => write.object,
            Work::Encoded(write) => write.object,
        }
    }

    pub fn request(&self) -> Option<RequestId> {
        match self {
            Work::Prepared(write) => write.request,
            Work::Encoded(write) => write.request,
        }
    }

    pub fn rows(&self) -> usize {
        match self {
            Work::Prepared(write) => write.rows.len(),
            Work::Encoded(write) => write.rows,
        }
    }

    /// Returns an upper bound of the bytes of the command.
    pub fn bytes(&self) -> usize {
        match self {
            Work::Prepared(write) => write.bytes,
            Work::Encoded(write) => write.command.len(),
        }
    }

    pub fn has_merges(&self) -> bool {
        match self {
            Work::Prepared(write) => write.has_merges(),
            Work::Encoded(write) => write.has_merges,
        }
    }

    /// Returns the ids of rows that merges will be folded into.
    pub fn merged(&self) -> Vec<String> {
        match self {
            Work::Prepared(write) => write.merged().into_iter().map(str::to_owned).collect(),
            Work::Encoded(write) => match Command::decode(&write.command).ok().and_then(Command::into_write) {
                Some((write, _)) => {
                    let merges = write.rows.iter().filter(|row| row.action == Action::Merge);
                    merges.map(|row| row.id.to_owned()).collect()
                }
                // The command was decoded on arrival.
                None => Vec::new(),
            },
        }
    }

    pub fn command(self, assigned: Xact) -> Bytes {
        match self {
            Work::Prepared(write) => write.command(assigned),
            Work::Encoded(write) => Command::with_assigned(write.command, assigned).expect("it was read when it came"),
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_model::command::{RowOp, Write};
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    use super::*;

    fn write(assigned: Xact) -> Bytes {
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::from_u128(2));
        let row = |id, action| RowOp {
            id,
            action,
            span_id: "s",
            root_span_id: "r",
            is_root: true,
            created: 1,
            doc: b"{}",
            rules: b"",
            audit: b"",
        };
        let rows = vec![row("a", Action::Merge), row("b", Action::Upsert)];
        Command::Write(Write { object, assigned, request: None, rows }).encode().into()
    }

    #[test]
    fn a_write_that_was_sent_is_the_same_write_under_another_id() {
        for (before, after) in
            [(Xact::new(9, 1), Xact::new(10, 2)), (Xact::ZERO, Xact::new(10, 2)), (Xact::new(9, 1), Xact(3))]
        {
            let work = Work::Encoded(Encoded::read(write(before)).expect("reads"));
            assert_eq!((work.rows(), work.has_merges(), work.merged()), (2, true, vec!["a".to_owned()]));
            assert_eq!(work.command(after), write(after));
        }
    }

    #[test]
    fn what_is_no_write_is_refused() {
        assert!(Encoded::read(Command::Advance { to: Xact(1) }.encode().into()).is_err());
        assert!(Encoded::read(Bytes::from_static(b"nothing")).is_err());
    }
}
