//! `assay cluster token --output`: a file with a token for the node that will join.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

/// Upper bound of a token file. A token has about two thousand bytes.
const FILE_BYTES_MAX: u64 = 16 << 10;
const OWNER_ALONE: u32 = 0o600;
/// Permission bits of users other than the owner.
const OTHERS: u32 = 0o077;

/// Writes a token to a file. A file that holds a token stays as it is unless `anew` is set: at a restart of a cluster its
/// nodes have joined already, and making a token takes a majority of them.
pub fn keep(file: &Path, anew: bool, make: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<Value> {
    let before = holds_token(file).with_context(|| format!("reading {}", file.display()))? && !anew;
    let doing = || format!("writing {}", file.display());
    if before {
        close_to_others(file).with_context(doing)?;
    } else {
        write(file, &make()?).with_context(doing)?;
    }
    Ok(json!({"output": file.display().to_string(), "before": before}))
}

pub fn in_words(kept: &Value) -> String {
    let file = kept["output"].as_str().unwrap_or_default();
    match kept["before"].as_bool() {
        Some(true) => format!("{file} already has a token and was not changed; --anew creates another one"),
        _ => format!("the token is in {file}"),
    }
}

fn holds_token(file: &Path) -> anyhow::Result<bool> {
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => anyhow::ensure!(found?.is_file(), "it exists and is not a regular file: name another one"),
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(std::str::from_utf8(&bytes).is_ok_and(assay_cluster::is_token))
}

/// Takes away the permissions of other users, which earlier versions left on existing files.
fn close_to_others(file: &Path) -> io::Result<()> {
    match fs::metadata(file)?.mode() & OTHERS {
        0 => Ok(()),
        _ => fs::set_permissions(file, Permissions::from_mode(OWNER_ALONE)),
    }
}

/// Writes through a new file: an existing one keeps its mode, and other users may have it open.
fn write(file: &Path, token: &str) -> io::Result<()> {
    let new = beside(file);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(OWNER_ALONE).open(&new)?;
    writeln!(opened, "{token}")?;
    opened.sync_all()?;
    fs::rename(&new, file)
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `assay cluster token` prints it, of a cluster that is no more.
    const TOKEN: &str = "assay-join-eyJjbHVzdGVyIjoiMDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDA3IiwiYW\
        RkcmVzcyI6ImEiLCJhdXRob3JpdHkiOiJiIiwic2VjcmV0IjoiYyJ9";

    fn nobody_asked() -> anyhow::Result<String> {
        anyhow::bail!("the node was asked")
    }

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().mode() & 0o777
    }

    #[test]
    fn a_token_that_is_there_stays_and_nobody_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("2");
        let made = keep(&file, false, || Ok(TOKEN.into())).unwrap();
        assert_eq!((&made["before"], mode(&file)), (&json!(false), 0o600));
        let kept = keep(&file, false, nobody_asked).unwrap();
        assert!(kept["before"] == true && in_words(&kept).contains("already has a token"), "{kept}");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{TOKEN}\n"));

        assert!(keep(&file, true, nobody_asked).is_err(), "another one is asked for");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{TOKEN}\n"), "what failed took nothing away");
        keep(&file, true, || Ok("other".into())).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "other\n");
        let mended = keep(&file, false, || Ok(TOKEN.into())).unwrap();
        assert_eq!(mended["before"], false, "what is no token is replaced by one");
    }

    /// A live token stayed readable for everybody in a file that was there before.
    #[test]
    fn no_other_user_can_read_it_whatever_the_file_was_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("2");
        for (text, anew) in [("", false), (TOKEN, false), (TOKEN, true)] {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
            fs::write(beside(&file), "left by one that was cut short").unwrap();
            let had_it_open = File::open(&file).unwrap();
            keep(&file, anew, || Ok(TOKEN.into())).unwrap();
            assert_eq!(mode(&file), 0o600, "{text:?} {anew}");
            let mut read = String::new();
            had_it_open.take(FILE_BYTES_MAX).read_to_string(&mut read).unwrap();
            assert_eq!(read, text, "who had the file open reads no new token");
        }
        fs::create_dir(dir.path().join("folder")).unwrap();
        let refused = keep(&dir.path().join("folder"), true, nobody_asked).unwrap_err();
        assert!(format!("{refused:#}").contains("not a regular file"), "{refused:#}");
    }
}
