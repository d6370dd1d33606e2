//! Output of commands to stdout. A reader that is gone is no failure: `assay cluster status | head` ends quietly.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

/// The reader of stdout is gone, which is no failure of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of the output is gone")
    }
}

impl std::error::Error for ReaderGone {}

/// Prints one or more lines at once, and flushes them.
pub fn line(text: impl fmt::Display) -> anyhow::Result<()> {
    write(&format!("{text}\n"))
}

/// Prints a value as indented JSON.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string_pretty(value)?)
}

/// Prints text as it is, and flushes it.
pub fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
}

fn failed(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::Error::new(error).context("cannot write to stdout"),
    }
}

/// Prints one line to stderr. A reader that is gone is no reason to end.
pub fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// An error and its causes on one line. A cause that the text before it ends with already is not repeated.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let os = || anyhow::anyhow!("No such file or directory (os error 2)");
        assert_eq!(chain(&os().context("making /x")), "making /x: No such file or directory (os error 2)");
        let whole = os().context("create /x: No such file or directory (os error 2)");
        let whole = whole.context("making /x: create /x: No such file or directory (os error 2)");
        assert_eq!(chain(&whole), "making /x: create /x: No such file or directory (os error 2)");
    }

    #[test]
    fn a_reader_that_is_gone_is_told_from_a_full_disk() {
        assert!(failed(ErrorKind::BrokenPipe.into()).is::<ReaderGone>());
        assert!(!failed(ErrorKind::StorageFull.into()).is::<ReaderGone>());
    }
}
