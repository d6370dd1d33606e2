//! What became of each write of a call, and what the caller is told of all of them together. Pure.

use std::time::Duration;

use assay_cluster::{NotWritten, ProposeError};
use assay_storage_model::command::Outcome;
use assay_storage_model::event::RowError;
use assay_storage_model::{ObjectKey, Xact};
use bytes::Bytes;

use crate::WriteError;

/// When to come again after a refusal, where no rate was measured.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// One write is written with this id, now or before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub xact: Xact,
    pub duplicate: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Gone,
    KeyReused {
        xact: Xact,
    },
    /// What is there and this row make no row together.
    Row(RowError),
    NotWritten(NotWritten),
    /// The command comes back: it is written where its shard is led.
    NotLeader(Bytes),
    /// The node that leads its shard has no room for it yet. The command comes back: it is sent again until its deadline.
    Later {
        command: Bytes,
        why: &'static str,
    },
    Unknown(String),
}

pub(crate) type Answer = Result<Done, Refused>;

/// A row that is named counts within the write.
pub(crate) fn answer_of(outcome: Result<Outcome, ProposeError>) -> Answer {
    match outcome {
        Ok(Outcome::Written { xact }) => Ok(Done { xact, duplicate: false }),
        Ok(Outcome::Duplicate { xact }) => Ok(Done { xact, duplicate: true }),
        Ok(Outcome::KeyReused { xact }) => Err(Refused::KeyReused { xact }),
        Ok(Outcome::ObjectGone) => Err(Refused::Gone),
        Ok(Outcome::Refused { row, reason }) => {
            Err(Refused::Row(RowError { row: row as usize, path: String::new(), problem: reason }))
        }
        Ok(other) => Err(Refused::Unknown(format!("a write was answered with {other:?}"))),
        Err(ProposeError::NotWritten(why)) => Err(Refused::NotWritten(why)),
        Err(ProposeError::Unknown { why }) => Err(Refused::Unknown(why)),
    }
}

/// `indexes`: the place among the rows as sent of each row that was written.
pub(crate) fn as_sent(answer: Answer, indexes: &[usize]) -> Answer {
    match answer {
        Err(Refused::Row(error)) => {
            let row = indexes.get(error.row).copied().unwrap_or_default();
            Err(Refused::Row(RowError { row, ..error }))
        }
        answer => answer,
    }
}

/// A refusal is passed on as such only where nothing of the call was written; a mixture is `Unknown`, since sending
/// all of it again is what makes it whole.
///
/// `objects`: each with its place among the writes of the call.
pub(crate) fn combine(objects: &[(usize, ObjectKey)], answers: Vec<Answer>) -> Result<Vec<Done>, WriteError> {
    let done = objects.iter().zip(&answers).filter(|(_, answer)| answer.is_ok());
    let written: Vec<ObjectKey> = done.map(|((_, object), _)| *object).collect();
    let unknown = answers.iter().any(|answer| matches!(answer, Err(Refused::Unknown(_))));
    let mut done = Vec::with_capacity(answers.len());
    for (answer, (write, object)) in answers.into_iter().zip(objects) {
        match answer {
            Ok(one) => done.push(one),
            Err(Refused::Unknown(why)) => return Err(WriteError::Unknown { why, written }),
            Err(refused) if unknown || !written.is_empty() => {
                let why = refusal(*write, object, refused).to_string();
                return Err(WriteError::Unknown { why: format!("{object}: {why}"), written });
            }
            Err(refused) => return Err(refusal(*write, object, refused)),
        }
    }
    Ok(done)
}

fn refusal(write: usize, object: &ObjectKey, refused: Refused) -> WriteError {
    match refused {
        Refused::Gone => WriteError::Gone { object: *object },
        Refused::KeyReused { xact } => WriteError::KeyReused { xact },
        Refused::Row(error) => WriteError::Row { write, error },
        Refused::Unknown(why) => WriteError::Unknown { why, written: Vec::new() },
        Refused::NotWritten(NotWritten::Busy(why)) | Refused::Later { why, .. } => busy(why),
        Refused::NotWritten(NotWritten::NoSpace(why)) => WriteError::NoSpace(why),
        Refused::NotWritten(why @ NotWritten::TooLarge { .. }) => WriteError::TooLarge { write, why: why.to_string() },
        Refused::NotWritten(why) => WriteError::Unavailable(why.to_string()),
        Refused::NotLeader(_) => WriteError::Unavailable(NotWritten::NotLeader { leader: None }.to_string()),
    }
}

pub(crate) fn busy(why: &str) -> WriteError {
    WriteError::Busy { why: why.to_owned(), retry_after: RETRY_AFTER }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    /// Their places begin at 3.
    fn objects(count: u128) -> Vec<(usize, ObjectKey)> {
        let key = |n| ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::from_u128(n));
        (3..).zip((0..count).map(key)).collect()
    }

    fn done(counter: u16) -> Answer {
        Ok(Done { xact: Xact::new(1, counter), duplicate: false })
    }

    #[test]
    fn a_refusal_is_a_refusal_only_where_nothing_was_written() {
        let full = || Err(Refused::NotWritten(NotWritten::NoSpace("full".into())));
        let keys = objects(2);
        assert_eq!(combine(&keys[..1], vec![full()]), Err(WriteError::NoSpace("full".into())));
        assert_eq!(combine(&keys, vec![full(), full()]), Err(WriteError::NoSpace("full".into())));
        let Err(WriteError::Unknown { written, why }) = combine(&keys, vec![done(0), full()]) else { panic!("mixed") };
        assert_eq!(written, [keys[0].1]);
        assert!(why.contains("full") && why.contains(&keys[1].1.to_string()), "{why}");
    }

    #[test]
    fn what_is_unknown_makes_all_of_it_unknown() {
        let keys = objects(2);
        for answers in [
            vec![Err(Refused::Gone), Err(Refused::Unknown("lost".into()))],
            vec![Err(Refused::Unknown("lost".into())), done(0)],
        ] {
            assert!(matches!(combine(&keys, answers), Err(WriteError::Unknown { .. })));
        }
    }

    #[test]
    fn each_refusal_keeps_its_kind() {
        let one = |refused| combine(&objects(1), vec![Err(refused)]).expect_err("refused");
        let not = |why| one(Refused::NotWritten(why));
        assert!(matches!(one(Refused::Gone), WriteError::Gone { .. }));
        assert!(matches!(one(Refused::KeyReused { xact: Xact::ZERO }), WriteError::KeyReused { .. }));
        assert!(matches!(not(NotWritten::Busy("x")), WriteError::Busy { .. }));
        assert!(matches!(not(NotWritten::TooLarge { bytes: 2, limit: 1 }), WriteError::TooLarge { write: 3, .. }));
        let refused = as_sent(answer_of(Ok(Outcome::Refused { row: 1, reason: "is too large".into() })), &[0, 7]);
        let error = RowError { row: 7, path: String::new(), problem: "is too large".into() };
        assert_eq!(one(refused.expect_err("refused")), WriteError::Row { write: 3, error });
        for why in [NotWritten::Closing, NotWritten::NotLeader { leader: None }, NotWritten::Failed("x".into())] {
            assert!(matches!(not(why), WriteError::Unavailable(_)));
        }
        assert_eq!(combine(&objects(2), vec![done(0), done(1)]).map(|done| done.len()), Ok(2));
    }
}
