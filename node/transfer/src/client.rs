//! Client side of an export or import. It owns the file and follows the node until its answer.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::protocol::{LINE_BYTES_MAX, NodeMessage, PART_BYTES, TransferAnswer};

/// Suffix of an incomplete file.
const PARTIAL: &str = "partial";

/// File of an export or import.
#[derive(Debug)]
pub enum LocalFile {
    Source(File),
    Target { file: BufWriter<File>, partial: PathBuf, to: PathBuf },
}

impl LocalFile {
    /// Opens the file that an import reads.
    pub fn source(from: &Path) -> anyhow::Result<LocalFile> {
        Ok(LocalFile::Source(File::open(from).with_context(|| format!("opening {}", from.display()))?))
    }

    /// Creates the file that an export writes.
    ///
    /// It gets its final name only when it is complete, and never replaces another file.
    pub fn target(to: &Path) -> anyhow::Result<LocalFile> {
        anyhow::ensure!(!to.try_exists()?, "{} already exists: name another file", to.display());
        let mut partial = to.as_os_str().to_owned();
        partial.push(format!(".{PARTIAL}"));
        let partial = PathBuf::from(partial);
        // The file contains all data of an organization, so only its owner may read it.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
        let file = made.with_context(|| format!("creating {}", partial.display()))?;
        Ok(LocalFile::Target { file: BufWriter::new(file), partial, to: to.to_owned() })
    }

    fn put(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let LocalFile::Target { file, partial, .. } = self else { anyhow::bail!("the node sent an unexpected file") };
        file.write_all(bytes).with_context(|| format!("writing {}", partial.display()))
    }

    fn part(&mut self, from_start: bool) -> anyhow::Result<Vec<u8>> {
        let LocalFile::Source(file) = self else { anyhow::bail!("the node requested an unexpected file") };
        if from_start {
            file.rewind()?;
        }
        let mut part = Vec::new();
        file.take(PART_BYTES as u64).read_to_end(&mut part).context("cannot read the file")?;
        Ok(part)
    }

    /// Renames the file to its final name or removes it, after the answer of the node.
    fn settle(self, is_done: bool) -> anyhow::Result<()> {
        let LocalFile::Target { file, partial, to } = self else { return Ok(()) };
        if !is_done {
            drop(file);
            return std::fs::remove_file(&partial).with_context(|| format!("removing {}", partial.display()));
        }
        let doing = || format!("writing {}", to.display());
        file.into_inner().map_err(|error| error.into_error()).with_context(doing)?.sync_all().with_context(doing)?;
        // Unlike a rename, a hard link does not replace a file that was created meanwhile.
        std::fs::hard_link(&partial, &to).with_context(doing)?;
        std::fs::remove_file(&partial).with_context(doing)?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).with_context(doing)
    }
}

/// Follows the requests of the node until its answer.
pub fn converse(stream: UnixStream, mut disk: LocalFile) -> anyhow::Result<Value> {
    let mut read = BufReader::with_capacity(PART_BYTES, &stream);
    let answer = follow(&stream, &mut read, &mut disk);
    let settled = disk.settle(matches!(answer, Ok(TransferAnswer::Done(_))));
    let answer = answer?;
    settled?;
    match answer {
        TransferAnswer::Done(value) => Ok(value),
        TransferAnswer::Refused(why) => anyhow::bail!(why),
    }
}

fn follow(mut stream: &UnixStream, read: &mut impl BufRead, disk: &mut LocalFile) -> anyhow::Result<TransferAnswer> {
    let mut part = Vec::new();
    loop {
        let mut line = String::new();
        read.by_ref().take(LINE_BYTES_MAX).read_line(&mut line).context("cannot read from the node")?;
        anyhow::ensure!(line.ends_with('\n'), "the node closed the connection before it responded");
        // A node of an earlier version answers at once that it does not understand the request.
        if let Ok(answer) = serde_json::from_str::<TransferAnswer>(&line) {
            return Ok(answer);
        }
        match serde_json::from_str(&line).context("the node sent a message that cannot be decoded")? {
            NodeMessage::Said(said) => eprintln!("{said}"),
            NodeMessage::Bytes(count) => {
                anyhow::ensure!(count <= PART_BYTES, "the node sent a part that is too large");
                part.resize(count, 0);
                read.read_exact(&mut part).context("cannot read from the node")?;
                disk.put(&part)?;
            }
            wanted @ (NodeMessage::First | NodeMessage::Next) => {
                let part = disk.part(matches!(wanted, NodeMessage::First))?;
                let length = u32::try_from(part.len()).context("a part of the file is too large")?;
                stream.write_all(&length.to_le_bytes())?;
                stream.write_all(&part)?;
            }
            NodeMessage::Answer(answer) => return Ok(answer),
        }
    }
}
