//! Sources of time and randomness, which the state machine of the catalog must not use.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use crate::error::RecordsError;

/// Returns the time in microseconds since the epoch, UTC.
pub fn now_micros() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    }
}

pub fn new_id() -> Uuid {
    Uuid::new_v4()
}

/// Returns cryptographically secure random bytes.
pub fn random<const BYTES: usize>() -> Result<[u8; BYTES], RecordsError> {
    Ok(assay_node_secrets::random()?)
}
