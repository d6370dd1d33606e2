//! Names of raft-engine's files, and the lock by which another process is detected.
//!
//! Appended files are named `<sequence, 16 digits>.raftlog`. Files named `.rewrite` hold the live rest of old files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LogError;

/// Queue of files of the engine, in the order of replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Queue {
    Rewrite,
    Append,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogFile {
    pub queue: Queue,
    pub sequence: u64,
    pub path: PathBuf,
}

const SEQUENCE_DIGITS: usize = 16;

/// Returns all log files of a directory in the order of replay. The list is empty if the directory does not exist.
pub(crate) fn list(dir: &Path) -> Result<Vec<LogFile>, LogError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| LogError::io(dir.display(), error))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| LogError::io(dir.display(), error))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(LogError::io(entry.path().display(), "a name is not valid UTF-8"));
        };
        if let Some((queue, sequence)) = parse(name) {
            files.push(LogFile { queue, sequence, path: entry.path() });
        }
    }
    files.sort();
    Ok(files)
}

fn parse(name: &str) -> Option<(Queue, u64)> {
    let (digits, suffix) = name.split_at_checked(SEQUENCE_DIGITS)?;
    let queue = match suffix {
        ".raftlog" => Queue::Append,
        ".rewrite" => Queue::Rewrite,
        _ => return None,
    };
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?.map(|sequence| (queue, sequence))
}

/// Fails if another process has the log open, and creates nothing.
pub(crate) fn refuse_if_locked(dir: &Path) -> Result<Option<fs::File>, LogError> {
    let path = dir.join("LOCK");
    let file = match fs::File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| LogError::io(path.display(), error))?,
    };
    file.try_lock()
        .map_err(|error| LogError::io(path.display(), format!("another process has this log open: {error}")))?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_engines_own_names_are_log_files() {
        assert_eq!(parse("0000000000000012.raftlog"), Some((Queue::Append, 12)));
        assert_eq!(parse("0000000000000001.rewrite"), Some((Queue::Rewrite, 1)));
        for name in ["LOCK", "12.raftlog", "0000000000000012.raftlog.reserved", "+000000000000012.raftlog", "é.raftlog"]
        {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
