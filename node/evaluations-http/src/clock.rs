//! Clock of evaluations.

use assay_node_records::mechanism::now_micros;

/// Returns the time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    u64::try_from(now_micros().div_euclid(1_000)).unwrap_or_default()
}
