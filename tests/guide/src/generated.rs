//! Generated parts of a page, between two comments.

use std::path::Path;

/// Variable of the environment: with it, a test writes what it would compare.
pub const UPDATE: &str = "ASSAY_UPDATE_GUIDE";

/// Compares the part `name` of a page with `wanted`, or writes it if [`UPDATE`] is set.
///
/// # Errors
/// If the page has no such part, or another one.
pub fn check(page: &Path, name: &str, wanted: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    let (from, to) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let parts = text.split_once(&from).and_then(|(before, rest)| Some((before, rest.split_once(&to)?)));
    let (before, (found, after)) = parts.ok_or_else(|| format!("{} has no part {name}", page.display()))?;
    if found == wanted {
        return Ok(());
    }
    if std::env::var_os(UPDATE).is_some() {
        let text = format!("{before}{from}{wanted}{to}{after}");
        return std::fs::write(page, text).map_err(|error| format!("{}: {error}", page.display()));
    }
    let at = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    Err(format!(
        "{}: the part {name} is not what the program has; run this test with {UPDATE}=1. First difference: {at:?}",
        page.display()
    ))
}
