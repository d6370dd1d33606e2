//! Errors of importers.

/// Error of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{source_name} answered {what} with something else: {why}")]
    Malformed { source_name: &'static str, what: String, why: String },
    #[error("{source_name} refused {what} with the status {status}: {why}")]
    Refused { source_name: &'static str, what: String, status: u16, why: String },
    #[error("{file}: {why}")]
    File { file: String, why: String },
    #[error("the state in this directory is of another import: {0}; name another --state directory")]
    OtherImport(String),
    #[error("the saved state cannot be read: {0}; delete the directory to start again")]
    State(String),
    #[error("{0}")]
    Settings(String),
    #[error("an import has at most {max} {what}: import parts of the source with --since and --until")]
    TooMany { what: &'static str, max: usize },
}
