//! Hardening of this process against other users of its machine, before anything else happens.
//!
//! Files that it makes are its owner's alone. Secrets that came with the environment are taken out of it: the environment a
//! process was started with can be read in `/proc` for as long as it lives, whatever it does to its own copy, so the process
//! starts itself again without them and hands them over through a pipe. Its id, its output and its exit code stay the same.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context;
use assay_node_identity::CLIENT_SECRET_VARIABLE;
use assay_node_secrets::MASTER_KEY_VARIABLE;
use rustix::fs::Mode;
use rustix::io::FdFlags;
use rustix::process::{Resource, Rlimit};

use crate::admin_api::token::TOKEN_VARIABLE;
use crate::cli::import::{
    BRAINTRUST_VARIABLE, LANGFUSE_VARIABLE, LANGSMITH_VARIABLE, MLFLOW_VARIABLE, PHOENIX_VARIABLE,
};
use crate::serve::API_KEY_VARIABLE;

/// Variables whose values are secrets.
pub const SECRET_VARIABLES: [&str; 9] = [
    API_KEY_VARIABLE,
    MASTER_KEY_VARIABLE,
    TOKEN_VARIABLE,
    CLIENT_SECRET_VARIABLE,
    LANGFUSE_VARIABLE,
    PHOENIX_VARIABLE,
    MLFLOW_VARIABLE,
    LANGSMITH_VARIABLE,
    BRAINTRUST_VARIABLE,
];
/// File descriptor of the secrets of the environment.
const PIPE_VARIABLE: &str = "_ASSAY_SECRETS_FD";
/// A pipe takes this without a reader.
const HANDED_OVER_BYTES_MAX: usize = 32 << 10;
const OTHERS: u32 = 0o077;

static HANDED_OVER: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Called first of all. Where the environment has secrets it does not return: the process begins again without them.
pub fn begin() -> anyhow::Result<()> {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
    if let Ok(number) = std::env::var(PIPE_VARIABLE) {
        let given = taken(&number).with_context(|| format!("cannot read the secrets from descriptor {number}"))?;
        HANDED_OVER.set(given).map_err(|_| anyhow::anyhow!("secrets were passed twice"))?;
        return Ok(());
    }
    // One that is no text is refused by whoever reads it, and named.
    let found = SECRET_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let found: BTreeMap<String, String> = found.filter(|(_, value)| !value.trim().is_empty()).collect();
    if found.is_empty() { Ok(()) } else { begin_again(&found).context("cannot restart without the secrets") }
}

/// The value of a secret variable, wherever it is by now.
pub fn variable(name: &str) -> Result<String, std::env::VarError> {
    match HANDED_OVER.get().and_then(|given| given.get(name)) {
        Some(value) => Ok(value.clone()),
        None => std::env::var(name),
    }
}

/// Passes the secrets of this process on to a child process.
pub fn hand_on(command: &mut Command) {
    command.env_remove(PIPE_VARIABLE);
    command.envs(HANDED_OVER.get().into_iter().flatten());
}

fn begin_again(secrets: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let text = serde_json::to_vec(secrets)?;
    anyhow::ensure!(
        text.len() <= HANDED_OVER_BYTES_MAX,
        "{} together have more than {HANDED_OVER_BYTES_MAX} bytes: write them to files, and name these in settings",
        secrets.keys().cloned().collect::<Vec<_>>().join(", ")
    );
    let (reader, mut writer) = std::io::pipe()?;
    writer.write_all(&text)?;
    drop(writer);
    rustix::io::fcntl_setfd(&reader, FdFlags::empty())?;
    let mut args = std::env::args_os();
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    command.args(args).env(PIPE_VARIABLE, reader.as_raw_fd().to_string());
    for name in SECRET_VARIABLES {
        command.env_remove(name);
    }
    Err(command.exec().into()) // it returns only where it failed
}

fn taken(number: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let number: u32 = number.parse()?;
    let place = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    let mut text = String::new();
    File::open(format!("{place}/{number}"))?.take(HANDED_OVER_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Keeps the memory of a node out of core files and of the hands of other processes of the same user.
pub fn close_memory() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = rustix::process::setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "could not disable core files");
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "other processes of the same user can read the memory of this process");
    }
}

/// Removes the permissions of other users on a data directory. Files in it keep their modes, since they are
/// unreachable.
pub fn close_directory(dir: &Path) -> anyhow::Result<()> {
    let doing = || format!("cannot remove the permissions of other users on {}", dir.display());
    let Ok(found) = std::fs::metadata(dir) else { return Ok(()) };
    let mode = found.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode & !OTHERS)).with_context(doing)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_an_earlier_program_is_closed() {
        let dir = tempfile::tempdir().expect("a directory");
        let mode = || std::fs::metadata(dir.path()).expect("it is there").permissions().mode() & 0o777;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        close_directory(dir.path()).expect("it is ours");
        assert_eq!(mode(), 0o700);
        close_directory(&dir.path().join("missing")).expect("there is nothing to close");
    }
}
