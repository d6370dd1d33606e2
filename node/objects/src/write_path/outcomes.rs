//! Outcomes of a call's writes, and their combination into the result of the call. Pure.

use std::time::Duration;

use assay_cluster::Attempt;
use assay_storage_model::command::Outcome;
use assay_storage_model::event::RowError;
use assay_storage_model::{NotWritten, ObjectKey, WriteFailure, WriteOutcome, Xact};
use bytes::Bytes;

use crate::WriteError;

/// Time before a retry after a refusal, if no rate was measured.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Attempt at one write. It contains the command if the write has to be repeated.
pub(crate) type WriteAttempt = Attempt<Bytes, WriteOutcome>;

/// Id of a write that was written now or before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub xact: Xact,
    pub duplicate: bool,
}

impl Acknowledged {
    /// Returns the id of a write, or `None` if it was refused or its outcome is unknown.
    pub fn of(outcome: &WriteOutcome) -> Option<Acknowledged> {
        match outcome {
            // A write without rows is done once the last id of the shard is known.
            Ok(Outcome::Written { xact } | Outcome::Done { last: xact }) => {
                Some(Acknowledged { xact: *xact, duplicate: false })
            }
            Ok(Outcome::Duplicate { xact }) => Some(Acknowledged { xact: *xact, duplicate: true }),
            Ok(
                Outcome::KeyReused { .. }
                | Outcome::ObjectGone
                | Outcome::Refused { .. }
                | Outcome::Conflict { .. }
                | Outcome::Catalog(_),
            )
            | Err(_) => None,
        }
    }
}

/// Replaces the number of a refused row by its index in the request. `indexes` has the index of each row.
pub(crate) fn as_sent(outcome: WriteOutcome, indexes: &[usize]) -> WriteOutcome {
    match outcome {
        Ok(Outcome::Refused { row, reason }) => {
            let place = indexes.get(row as usize).copied().unwrap_or_default();
            Ok(Outcome::Refused { row: u32::try_from(place).unwrap_or(u32::MAX), reason })
        }
        outcome => outcome,
    }
}

/// Combines the outcomes of a call's writes. A refusal is returned as such only if nothing of the call was written. A
/// mixture is `Unknown`, since a repeated call completes it.
///
/// `objects` contains the index of each write in the call, with its object.
pub(crate) fn combine(
    objects: &[(usize, ObjectKey)],
    outcomes: Vec<WriteOutcome>,
) -> Result<Vec<Acknowledged>, WriteError> {
    let done = objects.iter().zip(&outcomes).filter(|(_, outcome)| Acknowledged::of(outcome).is_some());
    let written: Vec<ObjectKey> = done.map(|((_, object), _)| *object).collect();
    let unknown = outcomes.iter().any(|outcome| matches!(outcome, Err(WriteFailure::Unknown { .. })));
    let mut all = Vec::with_capacity(outcomes.len());
    for (outcome, (write, object)) in outcomes.into_iter().zip(objects) {
        if let Some(acknowledged) = Acknowledged::of(&outcome) {
            all.push(acknowledged);
            continue;
        }
        return Err(match refusal(*write, object, outcome) {
            WriteError::Unknown { why, .. } => WriteError::Unknown { why, written },
            refused if unknown || !written.is_empty() => {
                WriteError::Unknown { why: format!("{object}: {refused}"), written }
            }
            refused => refused,
        });
    }
    Ok(all)
}

fn refusal(write: usize, object: &ObjectKey, outcome: WriteOutcome) -> WriteError {
    match outcome {
        Ok(Outcome::ObjectGone) => WriteError::Gone { object: *object },
        Ok(Outcome::KeyReused { xact }) => WriteError::KeyReused { xact },
        Ok(Outcome::Refused { row, reason }) => {
            let error = RowError { row: row as usize, path: String::new(), problem: reason };
            WriteError::Row { write, error }
        }
        Ok(other) => {
            WriteError::Unknown { why: format!("unexpected outcome of a write: {other:?}"), written: Vec::new() }
        }
        Err(WriteFailure::Unknown { why }) => WriteError::Unknown { why, written: Vec::new() },
        Err(WriteFailure::NotWritten(why @ NotWritten::TooLarge { .. })) => {
            WriteError::TooLarge { write, why: why.to_string() }
        }
        Err(WriteFailure::NotWritten(why)) => why.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    /// Returns objects with indexes from 3 on.
    fn objects(count: u128) -> Vec<(usize, ObjectKey)> {
        let key = |n| ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::from_u128(n));
        (3..).zip((0..count).map(key)).collect()
    }

    fn written(counter: u16) -> WriteOutcome {
        Ok(Outcome::Written { xact: Xact::new(1, counter) })
    }

    fn lost() -> WriteOutcome {
        Err(WriteFailure::Unknown { why: "lost".into() })
    }

    #[test]
    fn a_refusal_is_a_refusal_only_where_nothing_was_written() {
        let why = || NotWritten::NoSpace("full".into());
        let full = || Err(why().into());
        let refused = Err(WriteError::NotWritten { why: why(), retry_after: RETRY_AFTER });
        let keys = objects(2);
        assert_eq!(combine(&keys[..1], vec![full()]), refused);
        assert_eq!(combine(&keys, vec![full(), full()]), refused);
        let mixed = combine(&keys, vec![written(0), full()]);
        let Err(WriteError::Unknown { written, why }) = mixed else { panic!("mixed") };
        assert_eq!(written, [keys[0].1]);
        assert!(why.contains("full") && why.contains(&keys[1].1.to_string()), "{why}");
    }

    #[test]
    fn what_is_unknown_makes_all_of_it_unknown() {
        let keys = objects(2);
        for outcomes in [vec![Ok(Outcome::ObjectGone), lost()], vec![lost(), written(0)]] {
            assert!(matches!(combine(&keys, outcomes), Err(WriteError::Unknown { .. })));
        }
    }

    #[test]
    fn each_refusal_keeps_its_kind() {
        let one = |outcome| combine(&objects(1), vec![outcome]).expect_err("refused");
        let not = |why: NotWritten| one(Err(why.into()));
        assert!(matches!(one(Ok(Outcome::ObjectGone)), WriteError::Gone { .. }));
        assert!(matches!(one(Ok(Outcome::KeyReused { xact: Xact::ZERO })), WriteError::KeyReused { .. }));
        assert!(matches!(not(NotWritten::TooLarge { bytes: 2, limit: 1 }), WriteError::TooLarge { write: 3, .. }));
        let refused = as_sent(Ok(Outcome::Refused { row: 1, reason: "is too large".into() }), &[0, 7]);
        let error = RowError { row: 7, path: String::new(), problem: "is too large".into() };
        assert_eq!(one(refused), WriteError::Row { write: 3, error });
        for why in [NotWritten::busy("x"), NotWritten::Closing, NotWritten::NotLeader, NotWritten::Failed("x".into())] {
            assert_eq!(not(why.clone()), WriteError::NotWritten { why, retry_after: RETRY_AFTER });
        }
        let last = Ok(Outcome::Done { last: Xact::new(1, 0) });
        let all = combine(&objects(2), vec![last, written(1)]).expect("both are written");
        assert_eq!(all, [0, 1].map(|counter| Acknowledged { xact: Xact::new(1, counter), duplicate: false }));
    }
}
