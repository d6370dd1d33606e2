//! This process and its machine: hardening, lines of the log, secrets of the environment, the limit of open files and own addresses.

pub mod hardening;
pub mod log_lines;
pub mod open_files;
pub mod own_addresses;

use anyhow::Context;
use assay_node_auth::Secret;

/// Returns a secret of the environment; `None` where it is empty or not set.
pub fn secret_variable(name: &'static str) -> anyhow::Result<Option<Secret>> {
    match hardening::variable(name) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => Ok(Some(Secret::new(text.trim().to_owned()))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(error).context(name),
    }
}
