//! Tests of stored data: concurrent creation, attachments, exports, imports, formats, long results, retention and deletion.

pub(crate) mod concurrent_creation;
pub(crate) mod deletion;
pub(crate) mod export;
pub(crate) mod files;
pub(crate) mod formats;
pub(crate) mod import;
pub(crate) mod long_results;
pub(crate) mod organization_deletion;
pub(crate) mod retention;
