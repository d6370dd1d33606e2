//! Outcome of a write: the outcome of its command, or the reason why there is none.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::command::Outcome;

/// Outcome of a write. It may itself be a refusal, which all replicas reach alike.
pub type WriteOutcome = Result<Outcome, WriteFailure>;

/// Failure of a write. A write that was handed to consensus and did not succeed is `Unknown`: it may appear later, whole,
/// or never (promise P5).
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteFailure {
    #[error("not written: {0}")]
    NotWritten(#[from] NotWritten),
    #[error("the outcome of this write is unknown, repeating it with the same request id is safe: {why}")]
    Unknown { why: String },
}

/// Reason for which a write was not written and will not be written later.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotWritten {
    /// A queue is full. The write may be sent again in a moment.
    #[error("busy: {0}")]
    Busy(Cow<'static, str>),
    #[error("the disk has no space for writes: {0}")]
    NoSpace(String),
    #[error("no leader of the group could be reached in time; try again")]
    NotLeader,
    #[error("a command of {bytes} bytes is too large, the limit is {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// A large write has to be on a majority before its entry is proposed, and no majority took it.
    #[error("no majority of the group could be reached: {0}")]
    NoQuorum(String),
    #[error("a proposal without commands")]
    Empty,
    #[error("this node is shutting down")]
    Closing,
    /// The disk failed, and the node is about to stop; or another node refused the write.
    #[error("{0}")]
    Failed(String),
}

impl NotWritten {
    /// Refusal by a full queue.
    pub const fn busy(why: &'static str) -> NotWritten {
        NotWritten::Busy(Cow::Borrowed(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Xact;

    /// Nodes send these to each other.
    #[test]
    fn the_form_between_nodes_is_frozen() {
        let failures = [
            (NotWritten::busy("full"), r#"{"busy":"full"}"#),
            (NotWritten::NoSpace("full".into()), r#"{"no_space":"full"}"#),
            (NotWritten::NotLeader, r#""not_leader""#),
            (NotWritten::TooLarge { bytes: 2, limit: 1 }, r#"{"too_large":{"bytes":2,"limit":1}}"#),
            (NotWritten::NoQuorum("1 of 3".into()), r#"{"no_quorum":"1 of 3"}"#),
            (NotWritten::Empty, r#""empty""#),
            (NotWritten::Closing, r#""closing""#),
            (NotWritten::Failed("disk".into()), r#"{"failed":"disk"}"#),
        ];
        let mut cases: Vec<(WriteOutcome, String)> = Vec::new();
        for (why, form) in failures {
            cases.push((Err(why.into()), format!(r#"{{"Err":{{"not_written":{form}}}}}"#)));
        }
        let unknown = WriteFailure::Unknown { why: "lost".into() };
        cases.push((Err(unknown), r#"{"Err":{"unknown":{"why":"lost"}}}"#.into()));
        let written = Outcome::Written { xact: Xact(7) };
        cases.push((Ok(written), format!(r#"{{"Ok":{{"outcome":"written","xact":{}}}}}"#, json(&Xact(7)))));
        for (outcome, form) in cases {
            assert_eq!(json(&outcome), form);
            assert_eq!(serde_json::from_str::<WriteOutcome>(&form).expect("it decodes"), outcome);
        }
    }

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).expect("plain data encodes")
    }
}
