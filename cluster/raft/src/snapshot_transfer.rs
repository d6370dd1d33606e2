//! Transfer of snapshots between replicas: export, import and the limit on their rate.

pub(crate) mod exports;
pub(crate) mod imports;
pub(crate) mod throttle;
