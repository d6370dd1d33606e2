//! Responses of versions 0.4 and 0.5 to forwarded writes.

use assay_cluster_network::NoAnswer;
use assay_storage_model::command::Outcome;
use assay_storage_model::{NotWritten, WriteFailure};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{ResponseForm, Written};

const BUSY: &str = "too many writes wait for this group";

/// Response to a forwarded write, unless it is refused because another node leads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LegacyResponse {
    /// Outcomes only, for version 0.4.
    Outcomes(Vec<Outcome>),
    Applied {
        outcomes: Vec<Outcome>,
        applied: Option<u64>,
    },
    Busy,
    NoSpace(String),
    TooLarge {
        bytes: usize,
        limit: usize,
    },
}

/// Encodes a response for an older version, which treats any other failure as a refusal.
pub(super) fn encode(written: Result<Written, WriteFailure>, form: ResponseForm) -> Result<Bytes, NoAnswer> {
    let response = match written {
        Ok(Written { outcomes, .. }) if form == ResponseForm::Outcomes => LegacyResponse::Outcomes(outcomes),
        Ok(Written { outcomes, applied }) => LegacyResponse::Applied { outcomes, applied },
        Err(WriteFailure::Unknown { why }) => return Err(NoAnswer::Unknown(why)),
        Err(WriteFailure::NotWritten(why)) => match why {
            NotWritten::Busy(_) => LegacyResponse::Busy,
            NotWritten::NoSpace(why) => LegacyResponse::NoSpace(why),
            NotWritten::TooLarge { bytes, limit } => LegacyResponse::TooLarge { bytes, limit },
            other => return Err(NoAnswer::Refused(other.to_string())),
        },
    };
    Ok(serde_json::to_vec(&response).expect("plain data encodes").into())
}

/// Decodes the response of an older version.
pub(super) fn decode(response: &[u8]) -> Option<Result<Written, WriteFailure>> {
    let not_written = |why: NotWritten| Err(why.into());
    Some(match serde_json::from_slice(response).ok()? {
        LegacyResponse::Outcomes(outcomes) => Ok(Written { outcomes, applied: None }),
        LegacyResponse::Applied { outcomes, applied } => Ok(Written { outcomes, applied }),
        LegacyResponse::Busy => not_written(NotWritten::busy(BUSY)),
        LegacyResponse::NoSpace(why) => not_written(NotWritten::NoSpace(why)),
        LegacyResponse::TooLarge { bytes, limit } => not_written(NotWritten::TooLarge { bytes, limit }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_older_versions_are_frozen() {
        let written = |applied| Ok(Written { outcomes: Vec::new(), applied });
        let cases = [
            (written(None), ResponseForm::Outcomes, r#"{"outcomes":[]}"#),
            (written(Some(7)), ResponseForm::Applied, r#"{"applied":{"outcomes":[],"applied":7}}"#),
            (Err(NotWritten::busy(BUSY).into()), ResponseForm::Applied, r#""busy""#),
            (Err(NotWritten::NoSpace("full".into()).into()), ResponseForm::Applied, r#"{"no_space":"full"}"#),
            (
                Err(NotWritten::TooLarge { bytes: 2, limit: 1 }.into()),
                ResponseForm::Applied,
                r#"{"too_large":{"bytes":2,"limit":1}}"#,
            ),
        ];
        for (written, form, text) in cases {
            assert_eq!(decode(text.as_bytes()), Some(written.clone()));
            assert_eq!(encode(written, form).expect("a response"), text);
        }
    }
}
