//! Outcomes of writes in the format of versions before 0.6.

use assay_storage_model::command::Outcome;
use assay_storage_model::{NotWritten, WriteFailure, WriteOutcome, Xact};
use serde::{Deserialize, Serialize};

/// Outcome of one write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LegacyOutcome {
    Done {
        xact: Xact,
        duplicate: bool,
    },
    Gone,
    KeyReused {
        xact: Xact,
    },
    /// `row` is the index within the forwarded write.
    Row {
        row: u32,
        problem: String,
    },
    NotLeader,
    Busy,
    NoSpace(String),
    NotWritten(String),
    Unknown(String),
}

pub(super) fn encode(outcomes: Vec<WriteOutcome>) -> Vec<u8> {
    let outcomes: Vec<LegacyOutcome> = outcomes.into_iter().map(to_legacy).collect();
    serde_json::to_vec(&outcomes).expect("plain data encodes")
}

pub(super) fn decode(response: &[u8]) -> Option<Vec<WriteOutcome>> {
    let outcomes: Vec<LegacyOutcome> = serde_json::from_slice(response).ok()?;
    Some(outcomes.into_iter().map(from_legacy).collect())
}

fn to_legacy(outcome: WriteOutcome) -> LegacyOutcome {
    match outcome {
        Ok(Outcome::Written { xact } | Outcome::Done { last: xact }) => LegacyOutcome::Done { xact, duplicate: false },
        Ok(Outcome::Duplicate { xact }) => LegacyOutcome::Done { xact, duplicate: true },
        Ok(Outcome::ObjectGone) => LegacyOutcome::Gone,
        Ok(Outcome::KeyReused { xact }) => LegacyOutcome::KeyReused { xact },
        Ok(Outcome::Refused { row, reason }) => LegacyOutcome::Row { row, problem: reason },
        Ok(other @ (Outcome::Catalog(_) | Outcome::Conflict { .. })) => {
            LegacyOutcome::Unknown(format!("unexpected outcome of a write: {other:?}"))
        }
        Err(WriteFailure::Unknown { why }) => LegacyOutcome::Unknown(why),
        Err(WriteFailure::NotWritten(why)) => match why {
            NotWritten::NotLeader => LegacyOutcome::NotLeader,
            NotWritten::Busy(_) => LegacyOutcome::Busy,
            NotWritten::NoSpace(why) => LegacyOutcome::NoSpace(why),
            other => LegacyOutcome::NotWritten(other.to_string()),
        },
    }
}

fn from_legacy(outcome: LegacyOutcome) -> WriteOutcome {
    let why = match outcome {
        LegacyOutcome::Done { xact, duplicate: false } => return Ok(Outcome::Written { xact }),
        LegacyOutcome::Done { xact, duplicate: true } => return Ok(Outcome::Duplicate { xact }),
        LegacyOutcome::Gone => return Ok(Outcome::ObjectGone),
        LegacyOutcome::KeyReused { xact } => return Ok(Outcome::KeyReused { xact }),
        LegacyOutcome::Row { row, problem } => return Ok(Outcome::Refused { row, reason: problem }),
        LegacyOutcome::Unknown(why) => return Err(WriteFailure::Unknown { why }),
        LegacyOutcome::NotLeader => NotWritten::NotLeader,
        LegacyOutcome::Busy => NotWritten::busy(super::BUSY_THERE),
        LegacyOutcome::NoSpace(why) => NotWritten::NoSpace(why),
        LegacyOutcome::NotWritten(why) => NotWritten::Failed(why),
    };
    Err(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of version 0.5 may be in the cluster during an upgrade.
    #[test]
    fn the_older_form_is_frozen() {
        let not_written = |why: NotWritten| Err(why.into());
        let xact = Xact::new(1, 2);
        let id = serde_json::to_string(&xact).expect("plain data encodes");
        let cases: Vec<(WriteOutcome, String)> = vec![
            (Ok(Outcome::Written { xact }), format!(r#"{{"done":{{"xact":{id},"duplicate":false}}}}"#)),
            (Ok(Outcome::Duplicate { xact }), format!(r#"{{"done":{{"xact":{id},"duplicate":true}}}}"#)),
            (Ok(Outcome::ObjectGone), r#""gone""#.into()),
            (Ok(Outcome::KeyReused { xact }), format!(r#"{{"key_reused":{{"xact":{id}}}}}"#)),
            (
                Ok(Outcome::Refused { row: 3, reason: "is too large".into() }),
                r#"{"row":{"row":3,"problem":"is too large"}}"#.into(),
            ),
            (not_written(NotWritten::NotLeader), r#""not_leader""#.into()),
            (not_written(NotWritten::busy(crate::write_path::deliver::BUSY_THERE)), r#""busy""#.into()),
            (not_written(NotWritten::NoSpace("full".into())), r#"{"no_space":"full"}"#.into()),
            (not_written(NotWritten::Failed("disk".into())), r#"{"not_written":"disk"}"#.into()),
            (Err(WriteFailure::Unknown { why: "lost".into() }), r#"{"unknown":"lost"}"#.into()),
        ];
        for (outcome, form) in cases {
            let response = format!("[{form}]");
            assert_eq!(String::from_utf8(encode(vec![outcome.clone()])).expect("text"), response);
            assert_eq!(decode(response.as_bytes()), Some(vec![outcome]));
        }
    }
}
