//! The examples of the language, unchanged.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Returns the seeds, each preceded by a digit for the form.
pub fn seeds(language: &Path) -> Result<Vec<Vec<u8>>> {
    let path = language.join("examples.txt");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let source = |line: &str| line.replace("$L", "project_logs('P')").replace("$S", "project_logs('P') summary");
    let seed = |line: &str| {
        let form = if line.starts_with('{') { '2' } else { '0' };
        format!("{form}{}", source(line).replace('⏎', "\n")).into_bytes()
    };
    let filters = text.lines().filter_map(|line| line.split_once("WHERE ").or_else(|| line.split_once("filter: ")));
    Ok(text.lines().map(seed).chain(filters.map(|(_, filter)| format!("1{filter}").into_bytes())).collect())
}
