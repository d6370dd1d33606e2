//! Time limits of a call (G-18).

use crate::provider::ProviderMetadata;

pub const CONNECT_MS: u64 = 5_000;
/// Time limit until the first byte of a stream.
pub const FIRST_BYTE_MS_STREAM: u64 = 120_000;
/// Time limit until the first byte of a response in one piece.
pub const FIRST_BYTE_MS_WHOLE: u64 = 600_000;
/// Time limit between two chunks of a stream.
pub const CHUNK_MS: u64 = 120_000;
/// Time limit of a call with all its attempts, unless the operator sets another.
pub const CALL_MS_MAX: u64 = 30 * 60 * 1000;

/// Time limits of one attempt, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    pub connect_ms: u64,
    pub first_byte_ms: u64,
    pub chunk_ms: u64,
}

impl CallTimes {
    /// Returns the limits of a call. `timeout_ms` of the secret limits the time until the first byte.
    pub fn of(metadata: &ProviderMetadata, stream: bool) -> CallTimes {
        let usual = if stream { FIRST_BYTE_MS_STREAM } else { FIRST_BYTE_MS_WHOLE };
        let first_byte_ms = metadata.timeout_ms.unwrap_or(usual);
        CallTimes { connect_ms: CONNECT_MS.min(first_byte_ms), first_byte_ms, chunk_ms: CHUNK_MS }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::{Provider, ProviderScope, ProviderType};

    #[test]
    fn a_secret_may_have_its_own_time_until_the_first_byte() {
        let times = |metadata: serde_json::Value, stream| {
            let metadata = metadata.as_object().expect("an object").clone();
            let (provider, _) = Provider::parse("1", "n", ProviderType::OpenAi, ProviderScope::Project, &metadata);
            let times = CallTimes::of(&provider.metadata, stream);
            (times.connect_ms, times.first_byte_ms)
        };
        assert_eq!(times(json!({}), true), (5_000, 120_000));
        assert_eq!(times(json!({}), false), (5_000, 600_000));
        assert_eq!(times(json!({"timeout_ms": 900_000}), true), (5_000, 900_000));
        assert_eq!(times(json!({"timeout_ms": 100}), false), (100, 100));
        assert_eq!(times(json!({"timeout_ms": 0}), false), (5_000, 600_000));
    }
}
