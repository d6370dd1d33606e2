//! Transfer of snapshots between replicas: export, import and rate limit.

pub(crate) mod exports;
pub(crate) mod imports;
pub(crate) mod throttle;
