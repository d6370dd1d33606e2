//! Sandbox and interpreters for code functions, which belong to the machine and not to the directory.

use assay_node_runner::sandbox::{SandboxReport, SandboxStrength, probe};
use assay_node_runner::{FunctionSettings, interpreters};

use super::finding::Report;
use crate::code_functions::own_program;

/// Place of the finding.
const PLACE: &str = "code functions";

/// Adds what this machine offers for code functions. It changes no verdict about the directory.
pub fn examine(report: &mut Report) {
    match found() {
        Ok(found) => report.ok(PLACE, found),
        Err(why) => report.ok(PLACE, format!("cannot be checked here: {why:#}")),
    }
}

fn found() -> anyhow::Result<String> {
    // A sandbox has another user where this program runs as root.
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    let place = tempfile::Builder::new().prefix("assay-doctor-").permissions(everybody).tempdir()?;
    let sandbox = probe(&own_program()?, place.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (found, problems) = runtime.block_on(interpreters::find(&FunctionSettings::default()));
    let found: Vec<String> =
        found.iter().map(|one| format!("{} {}", one.about.runtime.name(), one.about.version)).collect();
    Ok(sentence(&sandbox, &found, &problems))
}

/// Returns what runs code here, and what is missing.
fn sentence(sandbox: &SandboxReport, interpreters: &[String], problems: &[String]) -> String {
    let strength = match sandbox.available {
        Some(SandboxStrength::Full) => "they run in a full sandbox",
        Some(_) => "they run only with functions.code = reduced",
        None => "they do not run: there is no sandbox",
    };
    let mut text = format!("{strength}, with {}; limits of the kernel: {}", interpreters.join(", "), sandbox.cgroups);
    let missing: Vec<&str> = sandbox.missing.iter().chain(problems).map(String::as_str).collect();
    if !missing.is_empty() {
        text.push_str("; missing: ");
        text.push_str(&missing.join("; "));
    }
    text
}
