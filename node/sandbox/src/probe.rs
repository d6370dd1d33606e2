//! Probe of the machine: which strength of a sandbox it offers, found by trials.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::cgroups::decision::CgroupOffer;
use crate::jail::{JailHost, JailLimits, JailPlan};
use crate::reach::closed_part;
use crate::spawner::{SpawnError, Spawner};
use crate::stage::{TRIAL_COMMAND, TrialReport};
use crate::strength::SandboxStrength;

/// Upper bound of the output of a trial that is read.
const REPORT_BYTES_MAX: u64 = 64 << 10;
/// Directories in which `bwrap` is looked for beside those of the search path.
const USUAL_DIRECTORIES: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

/// Sandbox that a machine offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxReport {
    pub host: JailHost,
    /// Strongest sandbox, or `None` if there is none.
    pub available: Option<SandboxStrength>,
    /// Missing layers, with what to do about each.
    pub missing: Vec<String>,
    /// Whether the kernel can hold the limits of whole sandboxes. A sandbox without that is measured.
    pub cgroups: CgroupOffer,
}

/// Tries the sandboxes of this machine, the strongest first. Blocks until the trials end.
///
/// `stage` is the program with the command of the stage, and `temp` a directory in which trials may run.
pub fn probe(stage: &Path, temp: &Path) -> SandboxReport {
    let bubblewrap = find_bubblewrap(std::env::var_os("PATH"));
    let is_root = rustix::process::geteuid().is_root();
    let host = JailHost { stage: stage.to_owned(), bubblewrap, is_root };
    // Before the trials, whose processes would be in the same cgroup.
    let cgroups = CgroupOffer::of_this_process();
    let mut missing = Vec::new();
    if host.bubblewrap.is_none() {
        missing.push("the program `bwrap`: install the package bubblewrap".to_owned());
    }
    for strength in [SandboxStrength::Full, SandboxStrength::Reduced] {
        if strength == SandboxStrength::Full && host.bubblewrap.is_none() {
            continue;
        }
        // Without a private root, the user of a sandbox needs the way to its files.
        let closed = (is_root && strength != SandboxStrength::Full).then(|| closed_part(temp)).flatten();
        if let Some(closed) = closed {
            missing.push(format!(
                "a {strength} sandbox: its users may not enter {}: name in functions.directory a directory that every \
                 user may enter",
                closed.display()
            ));
            continue;
        }
        match tried(&host, strength, temp) {
            Ok(report) => {
                if !report.has_landlock {
                    missing.push("landlock: start the kernel with it, for a second wall around files".to_owned());
                }
                return SandboxReport { host, available: Some(strength), missing, cgroups };
            }
            Err(why) => missing.push(format!("a {strength} sandbox: {why}")),
        }
    }
    SandboxReport { host, available: None, missing, cgroups }
}

/// Runs a trial. The error says what failed, in the words of the program that failed.
fn tried(host: &JailHost, strength: SandboxStrength, temp: &Path) -> Result<TrialReport, String> {
    let spawner = Spawner::start(host.clone(), None).map_err(|why| format!("no thread can be started: {why}"))?;
    let output = output_of(&spawner, strength, temp).map_err(|why| why.to_string())?;
    let report: TrialReport = serde_json::from_str(output.0.trim()).map_err(|_| {
        let words = output.1.trim();
        if words.is_empty() { "the trial ended without a report".to_owned() } else { words.to_owned() }
    })?;
    if !report.escapes.is_empty() {
        return Err(format!("it does not refuse {}", report.escapes.join(", ")));
    }
    if strength == SandboxStrength::Full && !report.has_private_processes {
        return Err("the process sees the processes of the machine".to_owned());
    }
    Ok(report)
}

fn output_of(spawner: &Spawner, strength: SandboxStrength, temp: &Path) -> Result<(String, String), SpawnError> {
    let plan = JailPlan {
        strength,
        command: vec![OsString::from(TRIAL_COMMAND)],
        read_only: Vec::new(),
        tunnel: None,
        temp: temp.to_owned(),
        streams: 0,
        limits: JailLimits::default(),
        environment: Vec::new(),
    };
    let mut process = spawner.spawn(plan)?;
    let (mut stdout, mut stderr) = (String::new(), String::new());
    // What cannot be read is no report.
    let _ = Read::by_ref(&mut process.stdout).take(REPORT_BYTES_MAX).read_to_string(&mut stdout);
    let _ = Read::by_ref(&mut process.stderr).take(REPORT_BYTES_MAX).read_to_string(&mut stderr);
    Ok((stdout, stderr))
}

fn find_bubblewrap(search_path: Option<OsString>) -> Option<PathBuf> {
    let listed: Vec<PathBuf> = search_path.map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let directories = listed.into_iter().chain(USUAL_DIRECTORIES.map(PathBuf::from));
    directories
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("bwrap"))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bubblewrap_is_found_on_the_search_path_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("bwrap");
        std::fs::write(&program, "").expect("a file");
        assert_eq!(find_bubblewrap(Some(directory.path().into())), Some(program));
    }
}
